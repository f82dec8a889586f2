#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What the code at one place had asked for, of what was live at the peak.
struct caller_bytes {
  std::string caller;  ///< `caller_of` the stacks
  double bytes = 0;
  double blocks = 0;
  bool is_estimated = false;         ///< whether blocks of a sample are among them
  double standard_error = 0;         ///< of the bytes, if they are estimated
  std::int64_t recorded_blocks = 0;  ///< that have a stack

  bool operator==(const caller_bytes&) const = default;
};

/// Who asked for what was live at the peak of the C++ heap. The rows of `callers`, `bytes_without` and `unsampled_bytes` add up
/// to `bytes`: of a sample, what is known exactly, the bytes of all small blocks, is divided in proportion to what those that
/// have a stack stand for (a ratio estimate: Cochran, "Sampling Techniques", 1977, chapter 6).
struct peak_callers {
  /// The fewest sampled blocks that are divided; fewer say too little.
  static constexpr std::int64_t least_sample = 10;

  std::string space;
  std::int64_t bytes = 0;             ///< live at the peak: exact, like all totals
  std::int64_t missing_blocks = 0;    ///< `heap_stacks::missing_blocks`
  std::int64_t bytes_without = 0;     ///< of blocks that should have a stack and have none
  std::int64_t unsampled_bytes = 0;   ///< of the small blocks of a sample, if too few of them have a stack
  std::int64_t unsampled_blocks = 0;  ///< how many these are
  std::int64_t sampled_blocks = 0;    ///< how many of them have a stack
  std::vector<caller_bytes> callers;  ///< most bytes first

  struct named_block {
    std::uint64_t address;
    std::int64_t bytes;
    std::string caller;
  };
  std::vector<named_block> largest;  ///< blocks with a stack, largest first, as many as were asked for

  /// Whether there is anything to say.
  [[nodiscard]] bool has_rows() const noexcept { return bytes > 0 && (!callers.empty() || unsampled_blocks > 0); }
};

/// Reads the peak of a trace with stacks, by three passes; memory for what is live. `recorded` is the trace's row of facts.
[[nodiscard]] peak_callers peak_callers_of(trace_source_view source, const heap_stacks& recorded, std::size_t largest_blocks);

/// Names the largest blocks at the peak after who asked for them, if they have no name.
void name_largest_blocks(profile& of, const peak_callers& callers);

/// Who asked for what was live at the peak of a trace with stacks, also as the names of the largest blocks in its profile, `of`.
/// None, with nothing changed, if the trace has no stacks, or no longer the events of its peak.
[[nodiscard]] std::optional<peak_callers> add_peak_callers(profile& of, trace_source_view source);

}  // namespace memprof::inline MEMPROF_ABI
