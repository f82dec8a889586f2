#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/running_summary.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_segments;

/// A finished segment that is kept in full; its end is the start of the next.
struct segment_mark {
  label name;
  std::uint32_t row;  ///< row of its name
  std::uint64_t begin_stamp;
  std::uint64_t end_stamp;
  std::uint64_t number;
  std::uint64_t step;
  std::uint32_t holds;  ///< number of its name's extremes that it holds, and of failures in it
  std::uint32_t pins;   ///< number of spaces with their overall peak or first shortfall in it
  bool is_first;        ///< the first of its name
  bool is_dropped;      ///< no longer kept; only here until `segment_history::compact`
};

/// All segments of one name.
struct named_segment_row {
  label name;
  bool stands_for_others;  ///< for all names beyond the limit
  std::uint64_t count;
  std::uint64_t first_number;
  std::uint64_t last_number;
  std::uint64_t last_step;
  running_summary duration;  ///< in stamps
  exact_fit_steps steps;
};

/// Removes the entries at positions that are not kept.
template <class Entry, class IsKept>
void keep_only(page_array<Entry>& entries, const IsKept& is_kept) noexcept {
  std::size_t kept = 0;
  for (std::size_t position = 0; position < entries.size(); ++position) {
    if (is_kept(position)) entries[kept++] = entries[position];
  }
  entries.truncate(kept);
}

/// The finished segments of a capture in bounded memory: those kept in full, and one row for each name.
///
/// Every space has an entry for each mark, at the same position, once it is settled. Dropping a segment only marks it, so that no
/// entry moves; once as many have been dropped as are kept, `compact` removes them. A segment costs a pass over the marks.
///
/// A step is one round of the repeating names: the next begins when a name recurs.
class segment_history {
 public:
  static constexpr std::uint32_t max_kept = 65'536;

  segment_history(std::uint32_t kept, std::uint32_t names) noexcept
      : kept_limit_(std::clamp(kept, std::uint32_t{4}, max_kept)), name_limit_(std::clamp(names, std::uint32_t{1}, max_kept)) {}

  static constexpr std::uint32_t no_row = ~std::uint32_t{0};

  /// Makes room for another segment of that name and returns its row; `no_row` if the system has no memory.
  [[nodiscard]] std::uint32_t prepare(label name) noexcept { return marks_.reserve(marks_.size() + 1) ? row_of(name) : no_row; }
  /// Adds a finished segment as the last mark. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool add(label name, std::uint64_t begin_stamp, std::uint64_t end_stamp) noexcept {
    if (!marks_.reserve(marks_.size() + 1)) return false;
    const std::uint32_t index = row_of(name);
    if (index == no_row) return false;
    named_segment_row& row = rows_[index];
    if (row.count != 0 && row.last_step == step_ && !row.stands_for_others) ++step_;
    const std::uint64_t ticks = end_stamp - begin_stamp;
    const auto duration = static_cast<std::int64_t>(std::min<std::uint64_t>(ticks, std::numeric_limits<std::int64_t>::max()));
    const bool is_first = row.count++ == 0;
    if (is_first) {
      row.first_number = count_;
      row.duration.begin(duration, count_);
    } else {
      row.duration.add(duration, count_);
    }
    row.last_number = count_;
    row.last_step = step_;
    row.steps.add(step_);
    choose_step_ends(index);
    return marks_.push_back({name, index, begin_stamp, end_stamp, count_++, step_, 0, 0, is_first, false});
  }

  /// A segment with holds is dropped later than others, until `release`; one with pins is not dropped at all, until `unpin`.
  void hold(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number)) ++mark->holds;
  }
  void release(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number); mark != nullptr && mark->holds != 0) --mark->holds;
  }
  void pin(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number)) ++mark->pins;
  }
  void unpin(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number); mark != nullptr && mark->pins != 0) --mark->pins;
  }

  /// Drops segments down to the limit. Segments without holds go first, then segments that hold an extreme,
  /// then the first of their name; among equals, the oldest.
  void drop_surplus() noexcept {
    while (marks_.size() - dropped_ > kept_limit_) {
      segment_mark* goes = nullptr;
      // The newest quarter always stays.
      const std::uint64_t newest = count_ - kept_limit_ / 4;
      for (segment_mark& mark : marks_) {
        if (mark.number >= newest) break;
        if (mark.is_dropped || mark.pins != 0) continue;
        if (goes == nullptr || worth(mark) < worth(*goes)) goes = &mark;
        if (worth(*goes) == 0) break;
      }
      if (goes == nullptr) return;
      goes->is_dropped = true;
      ++dropped_;
    }
  }

  /// Whether it is time to `compact`.
  [[nodiscard]] bool is_sparse() const noexcept { return dropped_ >= kept_limit_; }

  /// Removes the marks of dropped segments. Each space does the same with its entries when it next needs them: see
  /// `compactions` and `has_mark`.
  void compact() noexcept {
    std::size_t kept = 0;
    for (std::size_t position = 0; position < marks_.size(); ++position) {
      if (!marks_[position].is_dropped) marks_[kept++] = marks_[position];
    }
    marks_.truncate(kept);
    dropped_ = 0;
    ++compactions_;
  }
  /// How often `compact` was called.
  [[nodiscard]] std::uint64_t compactions() const noexcept { return compactions_; }
  /// Whether the segment with that number has a mark, dropped or not.
  [[nodiscard]] bool has_mark(std::uint64_t number) const noexcept {
    const std::size_t position = position_of(number);
    return position < marks_.size() && marks_[position].number == number;
  }
  /// Position of the first mark with that number or a later one.
  [[nodiscard]] std::size_t position_of(std::uint64_t number) const noexcept {
    return partition_point(marks_.size(), [&](std::size_t index) { return marks_[index].number < number; });
  }

  /// By position, which changes with `compact`.
  [[nodiscard]] const page_array<segment_mark>& marks() const noexcept { return marks_; }
  /// In order of first occurrence of the names.
  [[nodiscard]] const page_array<named_segment_row>& rows() const noexcept { return rows_; }
  /// Number of segments so far.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t kept() const noexcept { return marks_.size() - dropped_; }
  /// Number of the step that the last segment was in.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  /// The segments whose ends are the ends of steps: those of the most frequent name, of equals the last in order of first
  /// occurrence. In turn with others, a name may have one more than it would need.
  [[nodiscard]] const step_end_choice& step_ends() const noexcept { return step_ends_; }
  /// How many of them have ended since they were chosen.
  [[nodiscard]] std::uint64_t step_end_count() const noexcept {
    return step_ends_.row == no_row ? 0 : rows_[step_ends_.row].count - step_ends_.first;
  }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return marks_.bytes() + rows_.bytes() + row_index_.bytes(); }

 private:
  friend struct saved_segments;

  [[nodiscard]] static int worth(const segment_mark& mark) noexcept { return mark.is_first ? 2 : mark.holds != 0 ? 1 : 0; }

  /// Null if the segment is not kept.
  [[nodiscard]] segment_mark* find(std::uint64_t number) noexcept {
    const std::size_t position = position_of(number);
    const bool is_there = position < marks_.size() && marks_[position].number == number && !marks_[position].is_dropped;
    return is_there ? &marks_[position] : nullptr;
  }

  /// A segment of that row has ended.
  void choose_step_ends(std::uint32_t row) noexcept {
    if (row == step_ends_.row || rows_[row].stands_for_others) return;
    const std::uint64_t count = rows_[row].count;
    const std::uint64_t chosen = step_ends_.row == no_row ? 0 : rows_[step_ends_.row].count;
    if (count > chosen + 1 || (count == chosen && row > step_ends_.row) || chosen == 0) step_ends_ = {row, count - 1};
  }

  /// The row of a name, created if there is room, otherwise the row of all others; `no_row` if the system has no memory.
  [[nodiscard]] std::uint32_t row_of(label name) noexcept {
    if (name != other_names) {
      if (const live_blocks::place known = row_index_.find(key_of(name))) return static_cast<std::uint32_t>(known->owner);
    }
    const bool is_other = name == other_names || named_ >= name_limit_;
    if (is_other && others_ != no_row) return others_;
    if (!rows_.reserve(rows_.size() + 1)) return no_row;
    const auto index = static_cast<std::uint32_t>(rows_.size());
    if (is_other) {
      others_ = index;
    } else {
      block* const entry = row_index_.insert(key_of(name)).entry;
      if (entry == nullptr) return no_row;
      entry->owner = index;
      ++named_;
    }
    named_segment_row row{};
    row.name = is_other ? other_names : name;
    row.stands_for_others = is_other;
    return rows_.push_back(row) ? index : no_row;
  }

  /// Names are looked up in a table of blocks: they are few, and the table already exists.
  [[nodiscard]] static std::uint64_t key_of(label name) noexcept { return std::uint64_t{name} + 1; }

  std::uint32_t kept_limit_;
  std::uint32_t name_limit_;
  std::uint32_t named_ = 0;
  std::uint32_t others_ = no_row;
  std::uint64_t count_ = 0;
  std::uint64_t step_ = 0;
  std::size_t dropped_ = 0;
  std::uint64_t compactions_ = 0;
  step_end_choice step_ends_;
  page_array<segment_mark> marks_;
  page_array<named_segment_row> rows_;
  live_blocks row_index_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
