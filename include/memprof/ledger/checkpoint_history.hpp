#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_segments;

/// What was live at one moment, in all memory spaces together.
struct checkpoint_mark {
  label name;               ///< 0: periodic
  std::uint32_t row_count;  ///< number of spaces
  std::uint64_t number;     ///< index among all checkpoints, from 0
  std::uint64_t stamp;
  std::int64_t bytes;
  std::int64_t blocks;
  std::size_t first_row;
  bool is_first;  ///< the first of its name
};

/// The same in one memory space.
struct checkpoint_row {
  std::int64_t bytes;
  std::int64_t blocks;
  std::size_t first_block;
  std::uint32_t block_count;
  std::uint8_t space;
};

/// The checkpoints of a capture, in bounded memory.
///
/// All are kept while there are few; then only every second, every fourth, and so on, so that the kept ones are spread evenly
/// over a run of any length. Also kept are the newest, the first of each name, and those with the most and the fewest live bytes.
class checkpoint_history {
 public:
  /// Maximum number of kept checkpoints.
  static constexpr std::size_t max_kept = 128;
  /// Maximum number of names whose first checkpoint is kept.
  static constexpr std::size_t max_names = 32;

  /// Begins the next checkpoint. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool begin(label name, std::uint64_t stamp) noexcept {
    drop_last_if_unwanted();
    if (marks_.size() >= max_kept) thin();
    checkpoint_mark begun{};
    begun.name = name;
    begun.number = count_;
    begun.stamp = stamp;
    begun.first_row = rows_.size();
    begun.is_first = is_new(name);
    if (!marks_.push_back(begun)) return false;
    ++count_;
    return true;
  }

  /// Adds a space to the checkpoint begun last, with up to `largest` of its largest blocks; a pass over its live blocks. False if
  /// the system has no memory.
  [[nodiscard]] bool add(std::uint8_t space, const live_blocks& live, std::int64_t bytes, std::uint32_t largest) noexcept {
    checkpoint_row row{bytes, static_cast<std::int64_t>(live.size()), blocks_.size(), 0, space};
    const std::size_t room = std::min<std::size_t>(largest, live.size());
    if (!blocks_.resize(row.first_block + room)) return false;
    const top_blocks_view best{blocks_.data() + row.first_block, row.block_count, static_cast<std::uint32_t>(room)};
    live.for_each([&](const block& held) { best.offer(held); });
    if (!rows_.push_back(row)) {
      blocks_.truncate(row.first_block);
      return false;
    }
    checkpoint_mark& mark = marks_[marks_.size() - 1];
    ++mark.row_count;
    mark.bytes = add_saturating(mark.bytes, row.bytes);
    mark.blocks += row.blocks;
    return true;
  }

  /// Undoes the checkpoint begun last.
  void abandon() noexcept {
    drop_last();
    --count_;
  }

  /// In chronological order.
  [[nodiscard]] const page_array<checkpoint_mark>& marks() const noexcept { return marks_; }
  [[nodiscard]] const checkpoint_row* rows(const checkpoint_mark& mark) const noexcept { return rows_.data() + mark.first_row; }
  /// In no particular order.
  [[nodiscard]] const block* largest_blocks(const checkpoint_row& row) const noexcept { return blocks_.data() + row.first_block; }
  /// Number of checkpoints so far.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Number of blocks kept for all of them.
  [[nodiscard]] std::size_t kept_blocks() const noexcept { return blocks_.size(); }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return marks_.bytes() + rows_.bytes() + blocks_.bytes(); }

 private:
  friend struct saved_segments;

  /// Whether no checkpoint of that name is kept; false if there are too many names.
  [[nodiscard]] bool is_new(label name) const noexcept {
    std::size_t names = 0;
    for (const checkpoint_mark& mark : marks_) {
      if (!mark.is_first) continue;
      if (mark.name == name) return false;
      ++names;
    }
    return names < max_names;
  }

  /// Positions of the checkpoints kept for their bytes; of equal ones, the first.
  struct extremes {
    std::size_t least = 0;
    std::size_t greatest = 0;
  };
  [[nodiscard]] extremes find_extremes() const noexcept {
    extremes found;
    for (std::size_t position = 1; position < marks_.size(); ++position) {
      if (marks_[position].bytes < marks_[found.least].bytes) found.least = position;
      if (marks_[position].bytes > marks_[found.greatest].bytes) found.greatest = position;
    }
    return found;
  }

  [[nodiscard]] bool is_wanted(std::size_t position, const extremes& extreme) const noexcept {
    const checkpoint_mark& mark = marks_[position];
    return mark.number % stride_ == 0 || mark.is_first || position == extreme.least || position == extreme.greatest;
  }

  void drop_last_if_unwanted() noexcept {
    if (stride_ != 1 && !marks_.empty() && !is_wanted(marks_.size() - 1, find_extremes())) drop_last();
  }

  void drop_last() noexcept {
    const checkpoint_mark last = marks_[marks_.size() - 1];
    if (last.row_count != 0) blocks_.truncate(rows_[last.first_row].first_block);
    rows_.truncate(last.first_row);
    marks_.pop_back();
  }

  /// Drops the checkpoints that were kept only as extremes; if that is not enough, every second of the others.
  void thin() noexcept {
    drop_unwanted();
    while (marks_.size() > max_kept / 4 * 3) {
      stride_ *= 2;
      drop_unwanted();
    }
  }

  void drop_unwanted() noexcept {
    const extremes extreme = find_extremes();
    std::size_t kept_marks = 0;
    std::size_t kept_rows = 0;
    std::size_t kept_blocks = 0;
    for (std::size_t position = 0; position < marks_.size(); ++position) {
      if (!is_wanted(position, extreme)) continue;
      checkpoint_mark mark = marks_[position];
      const std::size_t first_row = mark.first_row;
      mark.first_row = kept_rows;
      for (std::size_t index = 0; index < mark.row_count; ++index) {
        checkpoint_row row = rows_[first_row + index];
        const std::size_t first_block = row.first_block;
        row.first_block = kept_blocks;
        for (std::size_t each = 0; each < row.block_count; ++each) blocks_[kept_blocks++] = blocks_[first_block + each];
        rows_[kept_rows++] = row;
      }
      marks_[kept_marks++] = mark;
    }
    marks_.truncate(kept_marks);
    rows_.truncate(kept_rows);
    blocks_.truncate(kept_blocks);
  }

  std::uint64_t count_ = 0;
  std::uint64_t stride_ = 1;  ///< a power of two: checkpoints stay whose number is a multiple of it
  page_array<checkpoint_mark> marks_;
  page_array<checkpoint_row> rows_;
  page_array<block> blocks_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
