#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/script_run.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What one run held at a moment, ready to be compared with others: `comparison.hpp` has two of them, `waterfall.hpp` several.

namespace memprof::inline MEMPROF_ABI {

struct stack_table;

/// What of the runs is compared: the bytes live at the peak of a memory space, at the end, or at the greatest peak of the
/// segments of one name.
enum class compared_moment : std::uint8_t { peak, end, segment };

[[nodiscard]] constexpr std::string_view to_string(compared_moment moment) noexcept {
  constexpr std::string_view names[] = {"peak", "end", "segment"};
  return names[static_cast<std::size_t>(moment)];
}

/// The most bytes that were live in any segment of a name.
struct phase_peak {
  std::string segment;
  std::int64_t bytes = 0;
};

/// What one operation held in one category at the moment.
struct held_bytes {
  std::vector<std::string> path;  ///< names of the operations, outermost first; empty: outside every operation
  memprof::category category = category::other;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t least_size = -1;  ///< as in `stack_row`
  std::string caller = {};       ///< likewise
  std::int64_t allocated = 0;    ///< over the whole run; -1: unknown
};

/// One run at the moment of the comparison. `held` adds up to `bytes`.
struct compared_run {
  std::string title;
  std::string file;  ///< empty: not read from one
  std::string space;
  std::string device;  ///< as in `profile`
  run_mode mode = run_mode::normal;
  bool exact = false;
  compared_moment moment = compared_moment::peak;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::string segment;        ///< in which the moment is; empty: unknown
  std::int64_t step = -1;     ///< of that segment; -1: unknown
  std::int64_t time_ns = -1;  ///< since the capture began; -1: unknown
  std::string operation;      ///< path of the one that reached the peak; empty: none was open
  std::vector<held_bytes> held;
  std::vector<owned_bytes> by_category;
  bool has_categories = false;        ///< whether `held` has them, as from a trace; a profile has only sums by category
  bool has_sizes = false;             ///< whether `held` has size classes, as from a trace
  bool has_callers = false;           ///< whether `held` has who asked, as from a trace with stacks
  std::vector<owned_bytes> spaces;    ///< the peaks of all memory spaces
  std::vector<phase_peak> phases;     ///< of all names, greatest first
  std::int64_t peak = 0;              ///< of the space over the whole run
  std::int64_t reserved = 0;          ///< the most bytes reserved by its allocator; 0: it reserves none
  memory_timeline timeline;           ///< of the space
  vector<memprof::segment> segments;  ///< of the run, in order of time
  /// What the process held, if the blocks of the space were really in it and the capture looked.
  std::optional<process_account> process;
  /// Steps of the training that the recording covers, where its source is known to make so many; -1: unknown.
  std::int64_t training_steps = -1;
  std::optional<script_run> script;  ///< how far it ran, if it is such a run
  std::vector<std::string> remarks;  ///< caveats about the recording, as `remarks_on`
};

/// A run at its peak or end. `stacks` is the table of the same run: `stack_table_of(profile)`, or that of its trace. Throws
/// `memprof::error` if the operations do not add up, for example because they are unknown.
[[nodiscard]] compared_run compared_run_of(std::string title, const profile& source, const space_profile& space,
                                           const stack_table& stacks, compared_moment moment = compared_moment::peak);

/// A run at the peak of the segment called `name` with the most live bytes, of those that the profile keeps. Throws
/// `memprof::error`, naming the nearest, if none is called so.
[[nodiscard]] compared_run compared_run_of(std::string title, const profile& source, const space_profile& space,
                                           const stack_table& stacks, std::string_view name);

}  // namespace memprof::inline MEMPROF_ABI
