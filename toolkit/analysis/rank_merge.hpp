#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/value_counts.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the ranks of one job recorded, seen together: which of them need more or less than the others, and what of.
///
/// Profiles are added one at a time and not kept. Memory does not grow with the number of ranks, but for one bit a rank, by which
/// a missing one is found.

namespace memprof::inline MEMPROF_ABI {

/// One rank of a job. Its memory space is the one of the merged family with the greatest peak: `cuda:3` for `cuda:*`.
struct ranked_run {
  std::int64_t rank = -1;  ///< -1: no launcher gave one
  std::string host;
  std::string device;  ///< as in `profile`
  std::string file;
  std::size_t source = 0;  ///< as passed to `rank_merge::add`
  std::string space;
  std::int64_t bytes = 0;    ///< its peak
  std::int64_t time_ns = 0;  ///< of the peak, since the rank's capture began
  std::string segment;       ///< in which the peak is; empty: unknown
  std::int64_t step = -1;    ///< of that segment; -1: unknown
  std::int64_t steps = 0;    ///< how many the rank made
  bool exact = false;
};

/// The peaks of all ranks in the segments of one name.
struct rank_segment {
  std::string name;
  std::int64_t ranks = 0;  ///< those that have it
  std::int64_t least = 0;  ///< bytes
  std::int64_t sum = 0;
  std::int64_t greatest = 0;
  std::int64_t greatest_rank = -1;
};

/// Something in which the ranks should be alike and are not.
struct rank_difference {
  struct alternative {
    std::string value;
    std::int64_t ranks = 0;       ///< that have it
    std::int64_t least_rank = 0;  ///< the first of them
  };
  std::string what;                 ///< "device"
  std::vector<alternative> values;  ///< most ranks first, at most `rank_merge::most_alternatives`
  std::int64_t other_ranks = 0;     ///< with further values
};

/// A rank of which there is a part or nothing.
struct unfinished_rank {
  std::int64_t rank = -1;
  std::string file;
  std::string reason;  ///< "its capture had not ended"
};

/// A caveat about recordings of ranks.
struct rank_remark {
  std::string text;        ///< as `remarks_on` the one of the first of them
  std::int64_t ranks = 0;  ///< that have it, some with other numbers
  std::int64_t first_rank = -1;
  bool has_other_numbers = false;
};

/// A rank that stands out, or else the greatest; how it differs from the rank with the median peak.
struct rank_finding {
  ranked_run run;
  std::int64_t change = 0;  ///< its peak above the median; below, if negative
  bool stands_out = false;
  /// Of the rank with the median, before, with this one, after: its rows add up to `change`. None: see `unexplained`.
  std::optional<comparison> difference;
  std::string unexplained;            ///< why there is no `difference`; empty: there is one
  std::string since_segment;          ///< in which the ranks depart; empty: unknown
  std::int64_t since_step = -1;       ///< of that segment, from 0
  std::int64_t last_alike_step = -1;  ///< the last one before it of which both profiles have a segment; -1: none
};

/// The ranks of a job. Of two medians, it is the lower.
struct merged_ranks {
  std::string space;             ///< the family of memory spaces: "cpu", "cuda:*"
  std::int64_t ranks = 0;        ///< those that have the space
  std::int64_t world_size = -1;  ///< -1: unknown
  bool has_several_hosts = false;
  std::int64_t sum = 0;  ///< of the peaks, which need not be at the same time
  std::int64_t least = 0;
  std::int64_t median = 0;
  std::int64_t greatest = 0;
  std::size_t median_source = 0;  ///< of the rank with the median
  std::int64_t median_rank = -1;
  std::int64_t deviation = 0;     ///< median of the distances from the median
  std::int64_t threshold = 0;     ///< a rank stands out whose peak is further from the median
  std::int64_t rounding = 1;      ///< the median and what follows from it are those of peaks rounded to multiples of this
  std::int64_t standing_out = 0;  ///< number of ranks
  std::vector<ranked_run> rows;   ///< by rank; if not all, the greatest and the least
  std::vector<rank_segment> segments;
  std::vector<rank_difference> differences;
  std::vector<std::int64_t> missing;  ///< ranks that left nothing, at most `rank_merge::most_named`
  std::int64_t missing_count = 0;
  std::vector<unfinished_rank> unfinished;  ///< at most `rank_merge::most_named`
  std::int64_t unfinished_count = 0;
  std::vector<std::int64_t> inexact;  ///< ranks whose numbers are not exact, at most `rank_merge::most_named`
  std::int64_t inexact_count = 0;
  std::vector<rank_remark> remarks;    ///< about the space, at most `rank_merge::most_alternatives`
  std::vector<rank_finding> findings;  ///< the furthest from the median first

  [[nodiscard]] std::int64_t mean() const noexcept { return ranks == 0 ? 0 : sum / ranks; }
  /// The greatest peak over the mean, less 1: 0.25 if the greatest is a quarter above.
  [[nodiscard]] double imbalance() const noexcept {
    return sum == 0 ? 0 : static_cast<double>(greatest) * static_cast<double>(ranks) / static_cast<double>(sum) - 1;
  }
  [[nodiscard]] bool has_all_rows() const noexcept { return static_cast<std::int64_t>(rows.size()) == ranks; }

  /// The rows for a reader: all of `rows` if they are at most 20, or with `all`; of more, the ten greatest and the ten least.
  [[nodiscard]] std::vector<const ranked_run*> shown_rows(bool all) const;
};

namespace detail {

/// What one family of memory spaces was in all ranks.
struct rank_space_fold {
  std::string family;
  value_counts peaks;
  std::int64_t sum = 0;
  std::vector<ranked_run> rows;  ///< greatest first; the greatest and the least, if not all
  std::vector<rank_segment> segments;
  std::vector<rank_remark> remarks;
};

}  // namespace detail

/// Reads the profiles of a job's ranks, one after the other.
class rank_merge {
 public:
  static constexpr std::size_t most_rows = 64;
  static constexpr std::size_t most_findings = 8;
  static constexpr std::size_t most_named = 64;
  static constexpr std::size_t most_segments = 64;
  static constexpr std::size_t most_spaces = 8;
  static constexpr std::size_t most_alternatives = 8;
  static constexpr std::int64_t most_ranks = std::int64_t{1} << 24;

  /// Adds the profile of a rank. `source` is the caller's number for it; 32 bits. False: it was left out, because it is a
  /// profile so far of a rank that was added already, as SIGUSR1 leaves them. Throws `memprof::error` if the rank was added and
  /// this profile is complete, or if a rank or the number of processes is more than `most_ranks`.
  bool add(const profile& of, const std::string& file, std::size_t source);

  /// Adds a rank that left only something that cannot be read.
  void add_unreadable(std::int64_t rank, const std::string& file, const std::string& reason);

  /// What has been added so far, in the family of memory spaces called `space`, or with a space of that name; empty: the one with
  /// the greatest peak. Its findings have no differences yet. Throws `memprof::error`, naming those that there are, if there is
  /// none.
  [[nodiscard]] merged_ranks result(std::string_view space = {}) const;

  /// Number of profiles added.
  [[nodiscard]] std::int64_t profiles() const noexcept { return profiles_; }

 private:
  [[nodiscard]] bool is_seen(std::int64_t rank) const;
  void see(std::int64_t rank);
  void add_space(const profile& of, std::string_view family, const ranked_run& run);
  void add_value(std::string_view what, const std::string& value, std::int64_t rank);

  std::vector<detail::rank_space_fold> spaces_;
  std::vector<rank_difference> values_;
  std::vector<bool> seen_;  ///< by rank
  std::vector<unfinished_rank> unfinished_;
  std::vector<std::int64_t> inexact_;
  std::int64_t unfinished_count_ = 0;
  std::int64_t inexact_count_ = 0;
  std::int64_t seen_count_ = 0;
  std::int64_t world_size_ = -1;
  std::string first_host_;
  bool has_several_hosts_ = false;
  std::int64_t profiles_ = 0;
};

/// A recording that is read again: its profile, and who allocated what in it.
struct ranked_recording {
  const profile& of;
  const stack_table& stacks;  ///< `stack_table_of(profile)`, or that of its trace
};

/// Fills in why `finding` differs from the rank with the median: in whose memory and since when. The more segments the profiles
/// keep, the closer the step. `usual` is the recording of `merged_ranks::median_source`.
void explain(rank_finding& finding, const merged_ranks& merged, const ranked_recording& usual, const ranked_recording& own);

/// "rank 3", or the name of its file.
[[nodiscard]] std::string rank_title(const ranked_run& run);

}  // namespace memprof::inline MEMPROF_ABI
