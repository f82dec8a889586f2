#include <memprof/config.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/toolkit/analysis/allocation_replay.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

caching_allocator_options with_capacity(caching_allocator_options options, std::int64_t capacity) noexcept {
  options.capacity = capacity;
  return options;
}

bool fits_into(const allocation_sequence& sequence, const caching_allocator_options& options) {
  return allocation_replay{sequence, options}.run() == sequence.steps().size();
}

std::int64_t largest_cached_block(const caching_allocator& allocator, bool is_small) {
  std::int64_t largest = 0;
  allocator.for_each_block([&](const cached_block& block) {
    const bool is_candidate = block.is_mapped && !block.is_active() && block.pool->is_small() == is_small;
    if (is_candidate && block.bytes > largest) largest = block.bytes;
  });
  return largest;
}

}  // namespace
}  // namespace detail

failed_allocation failure_of(const caching_allocator& allocator, std::uint64_t bytes, std::uint64_t stream, std::size_t pool) {
  failed_allocation failure;
  failure.requested = static_cast<std::int64_t>(bytes < detail::largest_request ? bytes : detail::largest_request);
  failure.allowed = std::min(allocator.options().allowed(), allocator.options().available());
  failure.reserved = allocator.stats().reserved_bytes.current;
  failure.allocated = allocator.stats().allocated_bytes.current;
  const bool is_small = detail::block_size(allocator.options(), failure.requested) <= detail::largest_small_block;
  failure.largest_cached = detail::largest_cached_block(allocator, is_small);
  failure.parts = fragmentation_of(allocator, stream, pool);
  return failure;
}

std::string operation_path(const allocation_sequence& sequence, std::uint32_t operation) {
  return operation == 0 ? std::string{} : detail::operation_paths(sequence.operations(), sequence.names())[operation];
}

memory_fit fit_memory(const allocation_sequence& sequence, const caching_allocator_options& options) {
  memory_fit result;
  detail::allocation_replay replay{sequence, options};
  const std::size_t done = replay.run();
  result.stats = result.unlimited_stats = replay.allocator().stats();
  result.capacity = options.capacity;
  if (done != sequence.steps().size()) {
    const allocation_step& failed = sequence.steps()[done];
    const auto stream = static_cast<std::uint16_t>(failed.stream);
    result.first_failure = failure_of(replay.allocator(), failed.bytes, replay.stream_number(stream), replay.pool(stream));
    result.first_failure->event = failed.event;
    result.first_failure->operation = failed.operation;
  }
  // Unless memory was returned early, the limit made no difference; but it also sets the length of expandable segments, which
  // affects the choice of blocks.
  const bool depends_on_limit = options.expandable_segments && options.capacity != 0;
  if (result.fits() && result.stats.num_device_free == 0 && !depends_on_limit) return result;
  const caching_allocator_options without_limit = detail::with_capacity(options, 0);
  detail::allocation_replay unlimited{sequence, without_limit};
  (void)unlimited.run();
  result.unlimited_stats = unlimited.allocator().stats();
  return result;
}

std::int64_t unused_in_private_pools(const allocation_sequence& sequence, const caching_allocator_options& options) {
  const caching_allocator_options without_limit = detail::with_capacity(options, 0);
  detail::allocation_replay whole{sequence, without_limit};
  if (!whole.has_private_pools() || sequence.steps().empty()) return 0;
  (void)whole.run();
  detail::allocation_replay first_part{sequence, without_limit};
  (void)first_part.run_to(whole.peak_step() + 1);
  std::int64_t unused = 0;
  first_part.allocator().for_each_block([&](const cached_block& block) {
    if (block.pool->id() != 0 && block.is_mapped && !block.is_active()) unused += block.bytes;
  });
  return unused;
}

fragmentation fragmentation_at_peak(const allocation_sequence& sequence, const caching_allocator_options& options) {
  if (sequence.steps().empty()) return {};
  detail::allocation_replay whole{sequence, options};
  (void)whole.run();
  detail::allocation_replay first_part{sequence, options};
  (void)first_part.run_to(whole.peak_step() + 1);
  const auto stream = static_cast<std::uint16_t>(sequence.steps()[whole.peak_step()].stream);
  return fragmentation_of(first_part.allocator(), first_part.stream_number(stream), first_part.pool(stream));
}

std::optional<std::int64_t> smallest_capacity(const allocation_sequence& sequence, const caching_allocator_options& options) {
  if (sequence.steps().empty()) return 0;
  constexpr std::int64_t step = detail::small_segment_size;  // segments and pages are multiples of it, barring odd options
  constexpr std::int64_t most = (std::int64_t{1} << 61) / step;
  const memory_fit needed = fit_memory(sequence, detail::with_capacity(options, 0));
  if (!needed.fits()) return std::nullopt;
  const auto fits_steps = [&](std::int64_t count) {
    return detail::fits_into(sequence, detail::with_capacity(options, count * step));
  };
  // Less than the peak of requested bytes cannot suffice; the bytes reserved without a limit usually do.
  std::int64_t too_few = (options.context + needed.stats.requested_bytes.peak - 1) / step;
  std::int64_t enough = detail::rounded_up(options.context + needed.stats.reserved_bytes.peak, step) / step;
  while (!fits_steps(enough)) {
    if (enough > most / 2) return std::nullopt;
    too_few = enough;
    enough *= 2;
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (fits_steps(middle) ? enough : too_few) = middle;
  }
  return enough * step;
}

}  // namespace memprof::inline MEMPROF_ABI
