#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The bytes in a memory space at one moment.
struct timeline_counters {
  std::int64_t live = 0;
  std::int64_t reserved = -1;  ///< that the allocator holds of the device; -1: not reported
  bool has_categories = false;
  std::array<std::int64_t, detail::category_names.size()> by_category{};
};

/// The allocation or free of a block, as Kineto writes it.
struct timeline_memory_event {
  std::int64_t time_ns;
  std::uint32_t thread;
  std::string_view space;
  std::uint64_t address;
  std::int64_t bytes;  ///< negative for a free
  std::int64_t live;
  std::int64_t reserved;
};

/// A format of slices, counters and marks over time. All times are nanoseconds since the start of the capture; slices of a thread
/// nest, and counters of a space come in order.
class timeline_sink {
 public:
  virtual ~timeline_sink() = default;

  virtual void begin(const process_info& process) = 0;
  virtual void name_thread(std::uint32_t thread, std::string_view name) = 0;
  virtual void begin_operation(std::uint32_t thread, std::int64_t ns, std::string_view name) = 0;
  virtual void end_operation(std::uint32_t thread, std::int64_t ns) = 0;
  virtual void segment(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) = 0;
  /// For the space with that number and name.
  virtual void count(std::uint32_t number, std::string_view space, std::int64_t ns, const timeline_counters& value) = 0;
  virtual void mark(std::string_view text, std::int64_t ns) = 0;
  virtual void memory(const timeline_memory_event& happened) = 0;
  virtual void finish() = 0;
};

/// What a viewer can handle.
struct timeline_limits {
  std::size_t points = 250'000;           ///< per space, for its counters
  std::size_t memory_events = 1'000'000;  ///< across all spaces; all or none are written
};

/// What was left out because of `timeline_limits`.
struct timeline_losses {
  std::uint64_t events_per_stretch = 1;  ///< above 1: of each such stretch, counters have only extremes and the last value
  std::uint64_t memory_events = 0;       ///< left out
};

/// Writes a trace over time: operations and segments as slices, bytes of each memory space as counters, peaks and failures as
/// marks. Two passes; takes memory for what is live.
timeline_losses write_timeline(const trace_source_view& source, const process_info& process, timeline_sink& sink,
                               const timeline_limits& limits = {});

/// Writes what a profile has over time: segments, the timeline of each memory space, peaks and failures. Each stretch of a
/// timeline is written as its greatest value, then its last.
void write_timeline(const profile& source, timeline_sink& sink);

}  // namespace memprof::inline MEMPROF_ABI
