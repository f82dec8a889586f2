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

#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What the code at one place had asked for, of what was live at the peak.
struct caller_bytes {
  std::string caller;                ///< `caller_of` the stacks
  double bytes = 0;                  ///< of a sample: estimated
  double blocks = 0;                 ///< likewise
  double standard_error = 0;         ///< of the bytes; 0: they are exact
  std::int64_t recorded_blocks = 0;  ///< that have a stack

  bool operator==(const caller_bytes&) const = default;
};

/// Who asked for what was live at the peak of the C++ heap.
struct peak_callers {
  std::string space;
  std::int64_t bytes = 0;  ///< live at the peak: exact, like all totals
  bool is_sampled = false;
  std::int64_t missing_blocks = 0;    ///< `heap_stacks::missing_blocks`
  std::int64_t bytes_without = 0;     ///< of blocks without a stack; of a sample, small ones stand for most of these
  std::vector<caller_bytes> callers;  ///< most bytes first; unless sampled, they and `bytes_without` add up to `bytes`

  struct named_block {
    std::uint64_t address;
    std::int64_t bytes;
    std::string caller;
  };
  std::vector<named_block> largest;  ///< blocks with a stack, largest first, as many as were asked for
};

/// Reads the peak of a trace with stacks, by three passes; memory for what is live. `recorded` is the trace's row of facts.
[[nodiscard]] peak_callers peak_callers_of(trace_source_view source, const heap_stacks& recorded, std::size_t largest_blocks);

/// Names the largest blocks at the peak after who asked for them, if they have no name.
void name_largest_blocks(profile& of, const peak_callers& callers);

}  // namespace memprof::inline MEMPROF_ABI
