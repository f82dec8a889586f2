#pragma once

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_walk.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The most fragmented states of one kind of memory over time, at most 512: stretches grow as states are added.
class fragmentation_line {
 public:
  static constexpr std::size_t max_points = 512;

  void add(tt_fragmentation_fact&& point);

  [[nodiscard]] const std::vector<tt_fragmentation_fact>& points() const noexcept { return points_; }

 private:
  void halve();

  std::vector<tt_fragmentation_fact> points_;
  std::size_t stretch_ = 1;  ///< states per point
  std::size_t in_last_ = 0;  ///< states in the last point so far; 0: it is full
};

/// The result of the first pass over a log: peaks, fragmentation, failures, and the parts in which blocks are freed.
class tt_log_survey final : public tt_walk_target {
 public:
  void on_rank(const tt_rank&) override {}
  void enter(std::string_view) override {}
  void leave() override {}
  void end_segment(std::string_view) override {}
  void next_state() override { ++states_; }

  void state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view before,
             std::uint64_t line) override;

  void allocate(const tt_rank&, std::size_t, const tt_blocks::block&, const tt_executed_operation*) override {}
  void deallocate(const tt_rank&, std::size_t, const tt_blocks::block& from, std::int64_t part) override;

  void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) override;

  void unseen(const tt_rank& rank, const tt_executed_operation& last) override;

  /// One row for each space, in the order of ranks.
  [[nodiscard]] std::vector<tt_memory_fact> memories() const;
  [[nodiscard]] std::vector<tt_fragmentation_fact> fragmentation_over_time() const;

  std::vector<tt_out_of_memory_fact> failures;
  std::vector<missing_source> missing;
  tt_splits splits;
  std::int64_t rounding = 1;  ///< the coarsest precision of any memory, in bytes

 private:
  struct memory_survey {
    tt_memory_fact fact;
    fragmentation_line line;
  };

  std::int64_t states_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, memory_survey> memories_;  ///< by rank and kind of memory
};

}  // namespace memprof::inline MEMPROF_ABI::detail
