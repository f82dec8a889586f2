#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/heap_replay.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// An overflow in a hostile file is an error, not a wrong number.
void add_bytes(std::int64_t& sum, std::int64_t bytes) {
  if (__builtin_add_overflow(sum, bytes, &sum)) raise("the sum of the sizes exceeds 64 bits");
}

/// The value that represents an allocation: its largest, the first of several equals. None if all are empty.
[[nodiscard]] std::uint32_t largest_buffer(const hlo_program& program, const hlo_allocation& allocation) {
  std::uint32_t largest = hlo_none;
  std::int64_t bytes = 0;
  for (const std::uint32_t buffer : allocation.buffers) {
    if (program.buffers[buffer].bytes > bytes) largest = buffer, bytes = program.buffers[buffer].bytes;
  }
  return largest;
}

/// The trace that is simulated for a space: that of its first allocation with one, else the one with the most events there.
[[nodiscard]] std::uint32_t trace_for(const hlo_program& program, std::int64_t space) {
  std::vector<std::uint32_t> of_allocation(program.allocations.size(), hlo_none);
  for (std::size_t trace = 0; trace < program.traces.size(); ++trace) {
    const std::vector<hlo_heap_event>& events = program.traces[trace];
    if (events.empty() || events[0].buffer == hlo_none) continue;
    of_allocation[program.buffers[events[0].buffer].allocation] = static_cast<std::uint32_t>(trace);
  }
  std::uint32_t first = hlo_none;
  for (std::uint32_t allocation = 0; allocation < program.allocations.size(); ++allocation) {
    const hlo_allocation& seen = program.allocations[allocation];
    if (seen.space != space || seen.is_indefinite() || of_allocation[allocation] == hlo_none) continue;
    if (first == hlo_none || seen.index < program.allocations[first].index) first = allocation;
  }
  if (first != hlo_none) return of_allocation[first];
  std::uint32_t best = hlo_none;
  std::ptrdiff_t most = 0;
  for (std::uint32_t trace = 0; trace < program.traces.size(); ++trace) {
    const std::vector<hlo_heap_event>& events = program.traces[trace];
    const auto count = std::count_if(events.begin(), events.end(), [&](const hlo_heap_event& happened) {
      return happened.buffer != hlo_none && program.buffers[happened.buffer].space == space;
    });
    if (count > most) best = trace, most = count;
  }
  return best;
}

/// Finds the greatest sum of bytes and its first occurrence.
class heap_peak {
 public:
  explicit heap_peak(const hlo_program& program, const std::vector<std::int64_t>& unpadded)
      : program_(program), unpadded_(unpadded) {}

  void allocated(std::size_t event, std::uint32_t owner, std::uint32_t) {
    add_bytes(heap_, program_.buffers[owner].bytes);
    add_bytes(unpadded_heap_, unpadded_[owner]);
    if (heap_ <= peak) return;
    peak = heap_;
    unpadded_peak = unpadded_heap_;
    peak_event = event;
  }
  void freed(std::size_t, std::uint32_t owner) {
    heap_ -= program_.buffers[owner].bytes;
    unpadded_heap_ -= unpadded_[owner];
    if (heap_ < 0) raise("a heap simulation frees more than it allocates");
  }

  std::int64_t peak = 0;
  std::int64_t unpadded_peak = 0;
  std::size_t peak_event = 0;

 private:
  const hlo_program& program_;
  const std::vector<std::int64_t>& unpadded_;
  std::int64_t heap_ = 0;
  std::int64_t unpadded_heap_ = 0;
};

/// The live buffers in order of allocation.
class heap_live_list {
 public:
  void allocated(std::size_t, std::uint32_t owner, std::uint32_t shown) {
    if (owner != shown) shown_[owner] = shown;
    places_[owner].push_back(entries_.size());
    entries_.push_back(owner);
  }
  void freed(std::size_t, std::uint32_t owner) {
    for (const std::size_t place : places_[owner]) entries_[place] = hlo_none;
    places_.erase(owner);
  }
  /// Calls `visit(owner, shown)`.
  template <class Visitor>
  void each(Visitor&& visit) const {
    for (const std::uint32_t owner : entries_) {
      if (owner == hlo_none) continue;
      const auto shown = shown_.find(owner);
      visit(owner, shown == shown_.end() ? owner : shown->second);
    }
  }

 private:
  std::vector<std::uint32_t> entries_;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> places_;
  std::unordered_map<std::uint32_t, std::uint32_t> shown_;
};

}  // namespace

}  // namespace detail

std::vector<std::int64_t> memory_spaces(const hlo_program& program) {
  std::vector<std::int64_t> spaces;
  for (const hlo_allocation& allocation : program.allocations) spaces.push_back(allocation.space);
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  constexpr std::size_t max_spaces = 250;
  if (spaces.size() > max_spaces)
    detail::raise("it has " + std::to_string(spaces.size()) + " memory spaces, more than any device has");
  return spaces;
}

heap_simulation simulate_heap(const hlo_program& program, std::int64_t space, const std::vector<std::int64_t>& unpadded) {
  heap_simulation result;
  for (const hlo_allocation& allocation : program.allocations) {
    if (allocation.space != space) continue;
    const auto add_if = [&](bool is_of, std::int64_t& sum) {
      if (is_of) detail::add_bytes(sum, allocation.bytes);
    };
    add_if(!allocation.is_thread_local, result.all_allocations);
    add_if(allocation.is_parameter, result.parameters);
    add_if(allocation.may_be_output, result.outputs);
    add_if(allocation.is_constant, result.constants);
    add_if(allocation.is_thread_local, result.thread_local_bytes);
    add_if(allocation.is_thread_local || allocation.is_tuple, result.non_reusable);
    add_if(allocation.is_indefinite() && !allocation.is_thread_local, result.indefinite_allocations);
    const std::uint32_t largest = allocation.is_indefinite() ? detail::largest_buffer(program, allocation) : hlo_none;
    if (largest == hlo_none) continue;
    detail::add_bytes(result.indefinite, allocation.bytes);
    result.live_at_peak.push_back({largest, largest, true});
  }
  result.trace = detail::trace_for(program, space);
  if (result.trace != hlo_none) {
    const std::vector<hlo_heap_event>& events = program.traces[result.trace];
    detail::heap_peak peak{program, unpadded};
    detail::heap_replay{program, peak}.run(events, events.size());
    result.peak = peak.peak;
    result.unpadded_peak = peak.unpadded_peak;
    result.peak_event = peak.peak_event;
    detail::heap_live_list live;
    if (peak.peak > 0) detail::heap_replay{program, live}.run(events, peak.peak_event + 1);
    live.each([&](std::uint32_t owner, std::uint32_t shown) { result.live_at_peak.push_back({owner, shown, false}); });
  }
  detail::add_bytes(result.peak, result.indefinite);
  detail::add_bytes(result.unpadded_peak, result.indefinite);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
