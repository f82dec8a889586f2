#include "memory_past_malloc.hpp"

#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstdint>

namespace memprof_tool {
namespace {

[[nodiscard]] std::int64_t known(std::int64_t bytes) { return std::max<std::int64_t>(0, bytes); }

/// Of the process's own memory, what is neither the profiler's nor malloc's, whose blocks have a little more than was recorded.
/// Blocks that were never touched make it too small.
[[nodiscard]] std::int64_t rest_of(const memprof::process_memory& reading) {
  const std::int64_t heap = reading.heap_bytes < 0 ? reading.recorded_bytes : reading.heap_bytes + known(reading.free_heap_bytes);
  return reading.anonymous_bytes - heap - reading.profiler_bytes;
}

}  // namespace

std::optional<memprof::missing_source> memory_past_malloc(const memprof::fact_table& readings) {
  using memprof::detail::is_notable;
  using memprof::detail::short_bytes;
  std::int64_t before = 0;
  const memprof::process_memory* most = nullptr;
  const auto rows = memprof::rows_of<memprof::process_memory>(memprof::vector<memprof::fact_table>{readings});
  for (const memprof::process_memory& row : rows) {
    if (row.moment == "first") before = known(rest_of(row));
    if (row.anonymous_bytes >= 0 && (most == nullptr || rest_of(row) > rest_of(*most))) most = &row;
  }
  if (most == nullptr || most->resident_bytes < 0) return {};
  const std::int64_t bytes = rest_of(*most) - before;
  // Any program's libraries have some static data, and its threads stacks.
  constexpr std::int64_t most_static_bytes = std::int64_t{4} << 20;
  if (bytes < most_static_bytes) return {};
  // As much again as was recorded may be what another malloc, which tells nothing, takes and keeps for its blocks.
  if (!is_notable(bytes, most->resident_bytes) || (most->heap_bytes < 0 && bytes <= most->recorded_bytes)) return {};
  return memprof::missing_source{"memory past malloc",
                                 short_bytes(bytes) + " of " + short_bytes(most->resident_bytes) +
                                     " resident, such as mappings, which --mmap records, static data or stacks"};
}

}  // namespace memprof_tool
