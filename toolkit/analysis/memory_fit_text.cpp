#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_fit_text.hpp>
#include <memprof/toolkit/analysis/reserved_causes_text.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

std::string needed_text(const caching_allocator_stats& stats) {
  return megabytes(stats.reserved_bytes.peak) + " reserved, " + megabytes(stats.allocated_bytes.peak) + " allocated, " +
         megabytes(stats.requested_bytes.peak) + " requested";
}

std::string operation_text(std::string_view path) {
  return path.empty() ? std::string{"outside every operation"} : "in operation " + on_one_line(path);
}

std::string failure_text(const failed_allocation& failure, std::string_view operation) {
  std::string text = "out of memory requesting " + megabytes(failure.requested) + ' ' + operation_text(operation) + " (event " +
                     std::to_string(failure.event) + ").\n  " + megabytes(failure.free()) + " free, " +
                     megabytes(failure.reserved) + " reserved: " + megabytes(failure.allocated) + " allocated";
  text += failure.fragmented() == 0 ? std::string{".\n"}
                                    : " and " + megabytes(failure.fragmented()) + " cached, in pieces of at most " +
                                          megabytes(failure.largest_cached) + " for such requests.\n";
  if (failure.parts.unused() > 0) text += "  Of the cached: " + to_text(failure.parts) + ".\n";
  if (failure.requested <= failure.free()) {
    text += "  That would suffice, but the allocator takes memory from the device in larger segments or pages.\n";
  } else if (failure.requested <= failure.allowed - failure.allocated) {
    text += "  It would fit without fragmentation: expandable segments may help unless they are already on.\n";
  }
  return text;
}

}  // namespace
}  // namespace detail

std::string to_text(const memory_fit& fit, std::string_view operation) {
  if (fit.capacity == 0) return "Peak: " + detail::needed_text(fit.stats) + ".\n";
  const std::string capacity = detail::megabytes(fit.capacity);
  if (fit.fits()) return "Fits in " + capacity + ". Peak: " + detail::needed_text(fit.stats) + ".\n";
  return "Does not fit in " + capacity + ": " + detail::failure_text(*fit.first_failure, operation) +
         "  Peak without a limit: " + detail::needed_text(fit.unlimited_stats) + ".\n";
}

}  // namespace memprof::inline MEMPROF_ABI
