#pragma once

#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What one segment did in one memory space, in bytes.
struct page_segment_usage {
  std::uint8_t space = 0;  ///< its id
  std::int64_t segment_peak = 0;
  std::int64_t allocations = 0;
  std::int64_t deallocations = 0;
  std::int64_t segment_change = 0;
  std::int64_t peak_live_bytes = 0;
  std::int64_t live_at_end = 0;
};

/// A kind of step: the same segments with the same bytes.
struct step_pattern {
  struct part {
    label name = 0;
    double begin = 0;  ///< sums, over its steps, of where the segment began and ended as a share of the step
    double end = 0;
    std::vector<page_segment_usage> usage;
  };
  std::uint64_t steps = 0;
  std::vector<part> parts;
};

/// A step that may get a frame of its own.
struct single_step {
  moment begin;
  moment end;
  std::uint64_t number = 0;             ///< from 0
  std::vector<std::int64_t> peaks;      ///< live bytes, by id of the space
  std::vector<std::uint64_t> activity;  ///< events that concern it, by id of the space
};

/// Finds the steps in the segments of a trace: rounds of repeating names. A step ends before a name that it already contains, and
/// the last one before the segment that ends with the capture.
///
/// Costs a step for each space that a segment changed, however many there are. Memory is bounded: neighbouring steps share a row
/// if there are too many, and the number of patterns is limited.
class step_survey {
 public:
  static constexpr std::uint32_t no_pattern = 0;

  struct row {
    moment begin;
    moment end;
    std::uint32_t pattern = no_pattern;  ///< index into `patterns` plus 1
    std::uint64_t steps = 0;
    std::uint64_t first_segment = 0;
  };
  struct usage {
    std::int64_t peak = 0;
    std::int64_t current = 0;
  };

  explicit step_survey(std::size_t max_rows = 131072) : max_rows_{max_rows} {}

  /// Records the end of a segment. `changed` has the spaces with events in it, ascending by id; `activity` is the number of
  /// events so far by id.
  void end_segment(label name, const moment& begin, const moment& end, const std::vector<page_segment_usage>& changed,
                   const std::vector<std::uint64_t>& activity);

  /// Records the end of the segment that ends with the capture: it follows the last step and belongs to none.
  void end_of_capture(const std::vector<page_segment_usage>& changed, const std::vector<std::uint64_t>& activity);

  /// Call after the last segment.
  void finish();

  [[nodiscard]] const std::vector<row>& rows() const noexcept { return rows_; }
  /// The usage of a row by id of the space.
  [[nodiscard]] usage usage_of(std::size_t index, std::size_t space) const noexcept;
  [[nodiscard]] const std::vector<step_pattern>& patterns() const noexcept { return patterns_; }
  /// The first step of each pattern, in the order of the patterns.
  [[nodiscard]] const std::vector<single_step>& first_of_pattern() const noexcept { return first_of_pattern_; }
  [[nodiscard]] const single_step& first() const noexcept { return first_; }
  [[nodiscard]] const single_step& last() const noexcept { return last_; }
  /// The first step in which a space, given by id, had its peak.
  [[nodiscard]] const single_step& highest(std::size_t space) const noexcept { return highest_[space]; }
  [[nodiscard]] std::size_t row_of(const single_step& step) const noexcept { return step.number / steps_per_row_; }
  [[nodiscard]] std::uint64_t step_count() const noexcept { return step_count_; }
  [[nodiscard]] std::uint64_t segment_count() const noexcept { return segment_count_; }

 private:
  static constexpr std::size_t max_spaces = 256;
  static constexpr std::size_t max_patterns = 1024;
  static constexpr std::size_t max_pattern_words = std::size_t{1} << 20;
  /// Beyond this many segments it is not a step but a run whose segments all have different names.
  static constexpr std::size_t max_segments_of_step = 4096;
  /// Of all rows, for all spaces: a page has numbers for each.
  static constexpr std::size_t max_cells = std::size_t{1} << 20;

  struct segment {
    label name;
    moment begin;
    moment end;
    std::vector<page_segment_usage> used;
  };

  /// A space in the open step and in the last one that has ended.
  struct space_state {
    std::int64_t live = 0;                ///< at the end of its last segment
    std::int64_t peak = 0;                ///< in the open step; `live` unless it has changed there
    std::uint64_t activity = 0;           ///< at the end of its last segment
    std::uint64_t activity_at_begin = 0;  ///< where the open step began
    std::int64_t last_peak = 0;
    std::uint64_t last_activity = 0;
    bool has_changed = false;  ///< in the open step
  };
  /// A row in which a space changed. In those between, it stayed as at the end of the one before.
  struct changed_row {
    std::size_t index;
    step_survey::usage usage;
  };

  space_state& change(std::size_t id);

  void close_step();

  /// The step that is about to close.
  [[nodiscard]] single_step step_as_single(std::uint64_t number) const;

  [[nodiscard]] std::uint32_t count_pattern(std::uint64_t number);

  void add_row(std::uint32_t pattern);

  /// From now on, twice as many steps share a row.
  void join_rows();

  std::size_t max_rows_;
  std::uint64_t steps_per_row_ = 1;
  std::uint64_t step_count_ = 0;
  std::uint64_t segment_count_ = 0;
  std::vector<row> rows_;
  std::array<std::vector<changed_row>, max_spaces> usage_;  ///< ascending
  std::map<std::vector<std::int64_t>, std::size_t> index_;  ///< keyed by what the pattern's segments did
  std::size_t pattern_words_ = 0;
  std::vector<step_pattern> patterns_;
  std::vector<single_step> first_of_pattern_;
  single_step first_;
  single_step last_;
  std::array<single_step, max_spaces> highest_;

  std::array<space_state, max_spaces> spaces_;
  std::size_t space_count_ = 0;  ///< the greatest id that has changed, plus one
  std::vector<std::uint8_t> changed_in_last_;
  moment last_begin_;
  moment last_end_;

  // The open step.
  moment step_begin_;
  moment step_end_;
  std::vector<segment> segments_;  ///< the first `max_segments_of_step`
  std::size_t segments_in_step_ = 0;
  std::unordered_set<label> names_;
  std::vector<std::uint8_t> changed_;
  std::vector<std::int64_t> signature_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
