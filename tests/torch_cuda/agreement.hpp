#pragma once

#include <memprof/memprof.hpp>
#include <memprof/profile/fact/missing_source.hpp>

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What PyTorch's own statistics of a device say of the segments of a capture, and whether the profile says the same. Not with
/// Catch2: older wheels of libtorch are built with another std::string than it.

namespace agreement {

namespace cuda_allocator = c10::cuda::CUDACachingAllocator;

inline int failures = 0;

inline void check(const std::string& what, std::int64_t found, std::int64_t expected) {
  const bool is_equal = found == expected;
  if (!is_equal) ++failures;
  std::printf("%s %s: %lld%s%s\n", is_equal ? "equal    " : "NOT EQUAL", what.c_str(), static_cast<long long>(found),
              is_equal ? "" : ", PyTorch says ", is_equal ? "" : std::to_string(expected).c_str());
}

inline void check(const std::string& what, bool holds) {
  if (!holds) ++failures;
  std::printf("%s %s\n", holds ? "holds    " : "FAILS    ", what.c_str());
}

/// What `getDeviceStats` said at the end of a segment, after `resetPeakStats` at its begin. All pools together.
struct segment_statistics {
  std::string name;
  std::int64_t requested_peak;
  std::int64_t requested;
  std::int64_t reserved_peak;
  std::int64_t reserved;
  std::int64_t allocated;  ///< the sizes of blocks
  std::int64_t live_blocks;
  std::int64_t all_allocations;  ///< number since the process began
};

/// A capture with the device's statistics for each of its segments.
class compared_capture {
 public:
  template <class... Backends>
  static compared_capture begin() {
    return compared_capture{memprof::begin_capture<Backends...>()};
  }

  /// Runs one segment.
  template <class Work>
  void segment(const std::string& name, Work work) {
    cuda_allocator::resetPeakStats(0);
    work();
    statistics_.push_back(statistics_now(name));
    memprof::snapshot(name);
  }

  /// Ends the capture and compares. `requested_bytes` of PyTorch keeps a block until no stream uses it: it is the active bytes.
  /// Where no stream outlives a block's tensor, as `streams_end` tells, live bytes have the same peaks.
  void compare(bool streams_end = true) {
    guard_.end();
    const memprof::profile& profile = guard_.profile();
    const memprof::space_profile& live = profile.space("cuda:0");
    for (std::size_t index = 0; index < statistics_.size(); ++index) {
      const segment_statistics& expected = statistics_[index];
      const std::string name = expected.name + ": ";
      const memprof::active_usage& active = live.active.segments[index];
      check(name + "peak of active bytes", active.peak, expected.requested_peak - before_.requested);
      check(name + "active bytes at the end", active.current, expected.requested - before_.requested);
      if (streams_end) check(name + "peak of live bytes", peak_of(live, index), expected.requested_peak - before_.requested);
      check(name + "peak of reserved bytes", live.reserved.segments[index].peak, expected.reserved_peak);
      check(name + "reserved bytes at the end", live.reserved.segments[index].current, expected.reserved);
      const std::int64_t before = index == 0 ? before_.all_allocations : statistics_[index - 1].all_allocations;
      check(name + "number of allocations", live.segments[index].allocation_count, expected.all_allocations - before);
    }
    check("live blocks at the end", live.allocation_count - live.deallocation_count,
          statistics_.back().live_blocks - before_.live_blocks);
    std::int64_t of_streams = 0;
    std::int64_t reserved_of_streams = 0;
    for (const memprof::stream_usage& row : live.streams) {
      of_streams += row.cumulative_current;
      reserved_of_streams += row.reserved_current;
    }
    check("live bytes of all streams and pools together", of_streams, live.cumulative_current);
    check("reserved bytes of all streams and pools together", reserved_of_streams, live.reserved.current);
    check("the profile is exact", profile.exact);
    check("everything was captured", memprof::rows_of<memprof::missing_source>(profile.facts).empty());
    check("releases of memory never seen", live.reserved.unmatched_releases.count, 0);
  }

  [[nodiscard]] memprof::profile profile() { return guard_.profile(); }

 private:
  explicit compared_capture(memprof::capture_guard guard) : guard_(std::move(guard)), before_(statistics_now("before")) {}

  [[nodiscard]] static segment_statistics statistics_now(const std::string& name) {
    const auto now = cuda_allocator::getDeviceStats(0);
    return {name,
            now.requested_bytes[0].peak,
            now.requested_bytes[0].current,
            now.reserved_bytes[0].peak,
            now.reserved_bytes[0].current,
            now.allocated_bytes[0].current,
            now.allocation[0].current,
            now.allocation[0].allocated};
  }

  /// Greatest live bytes in a segment, those of earlier ones included.
  [[nodiscard]] static std::int64_t peak_of(const memprof::space_profile& space, std::size_t index) {
    const memprof::segment_usage& usage = space.segments[index];
    return usage.cumulative_current - usage.segment_change + usage.segment_peak;
  }

  memprof::capture_guard guard_;
  segment_statistics before_;
  std::vector<segment_statistics> statistics_;
};

}  // namespace agreement
