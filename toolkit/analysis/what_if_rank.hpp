#pragma once

#include <memprof/toolkit/analysis/block_history.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// @file
/// Which owners are worth a change: by how much the peak would fall without each, and the fewest without which it is low enough.
///
/// An owner is an operation without those below it; libtorch's operators within one, and layers that differ in a number, are one.

namespace memprof::inline MEMPROF_ABI {

/// An owner, and the run without its blocks.
struct ranked_owner {
  std::string owner;
  std::int64_t live = 0;    ///< bytes at the peak
  std::int64_t blocks = 0;  ///< at the peak
  std::int64_t peak = 0;    ///< of the run without it

  bool operator==(const ranked_owner&) const = default;
};

struct owner_ranking {
  std::string space;
  bool exact = false;                ///< as in `what_if_result`
  std::vector<std::string> remarks;  ///< likewise
  std::int64_t peak = 0;             ///< of the run as it was
  std::vector<ranked_owner> owners;  ///< that are live at the peak; the lowest new peak first
};

/// Ranks the owners of what is live at the peak. Takes logarithmic time for each block of theirs, and 16 bytes an event.
[[nodiscard]] owner_ranking rank_owners(const block_history& run);

/// The fewest owners without whose intermediate blocks (of category activation, temporary or other) the peak is low enough.
struct target_answer {
  std::string space;
  bool exact = false;                ///< as in `what_if_result`
  std::vector<std::string> remarks;  ///< likewise
  std::int64_t target = 0;
  std::int64_t peak = 0;             ///< of the run as it was
  std::int64_t new_peak = 0;         ///< without the owners
  std::int64_t least = 0;            ///< the peak without all that can be removed: no lower target can be reached
  bool is_smallest = true;           ///< false: there may be fewer, the search was given up
  std::vector<ranked_owner> owners;  ///< `peak`: without it and those before it

  [[nodiscard]] bool is_possible() const noexcept { return least <= target; }
};

/// What `find_target` may take: some seconds.
inline constexpr std::int64_t default_search_effort = 100'000'000;

/// Finds them: exactly, unless that takes more than so many additions for one of the peaks; then by taking what helps most. Takes
/// a pass over the events for each peak that an attempt leaves too high. What was allocated outside every operation, and
/// parameters, gradients, optimizer state, inputs and caches of keys and values cannot be removed.
[[nodiscard]] target_answer find_target(const block_history& run, std::int64_t target,
                                        std::int64_t effort = default_search_effort);

}  // namespace memprof::inline MEMPROF_ABI
