#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// The addresses [begin, end).
struct address_range {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Disjoint ranges of addresses, in memory of its own. A change moves a few hundred of them at most, however many there are: they
/// lie in chunks, whose order is kept apart.
class address_ranges {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes() + chunks_.bytes(); }

  /// Makes room for one `erase` and one `insert`. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool make_room() noexcept {
    return rows_.reserve(rows_.size() + 2 * chunk_rows) && chunks_.reserve(chunks_.size() + 2);
  }

  /// Adds a range that overlaps with none. Requires room.
  void insert(const address_range& added) noexcept {
    place at = place_for(added);
    if (chunks_[at.chunk].size == chunk_rows) at = split(at);
    chunk& target = chunks_[at.chunk];
    address_range* const row = rows_of(target) + at.row;
    std::memmove(row + 1, row, (target.size - at.row) * sizeof(address_range));
    *row = added;
    ++target.size;
    ++size_;
  }

  /// Removes [begin, end) from the ranges and returns how many bytes of it they covered. Requires room.
  std::uint64_t erase(std::uint64_t begin, std::uint64_t end) noexcept {
    place at = first_behind(begin);
    if (at.chunk == chunks_.size()) return 0;
    std::uint64_t erased = 0;
    if (address_range& first = row_at(at); first.begin < begin) {
      const std::uint64_t first_end = first.end;
      first.end = begin;
      if (first_end > end) {
        insert({end, first_end});
        return end - begin;
      }
      erased += first_end - begin;
      ++at.row;
    }
    bool is_through = false;
    while (at.chunk != chunks_.size() && !is_through) {
      address_range* const rows = rows_of(chunks_[at.chunk]);
      const std::size_t size = chunks_[at.chunk].size;
      std::size_t last = at.row;
      for (; last != size && rows[last].end <= end; ++last) erased += rows[last].end - rows[last].begin;
      is_through = last != size;
      if (is_through && rows[last].begin < end) {
        erased += end - rows[last].begin;
        rows[last].begin = end;
      }
      const bool is_dropped = !remove(at, last);
      at = {is_dropped ? at.chunk : at.chunk + 1, 0};
    }
    return erased;
  }

  /// The size of the range that begins at `address`, or 0.
  [[nodiscard]] std::uint64_t bytes_from(std::uint64_t address) const noexcept {
    const place at = first_behind(address);
    if (at.chunk == chunks_.size()) return 0;
    const address_range& found = rows_of(chunks_[at.chunk])[at.row];
    return found.begin == address ? found.end - address : 0;
  }

  /// In the order of addresses.
  template <class Visitor>
  void for_each(Visitor&& visit) const noexcept {
    for (const chunk& part : chunks_) {
      for (std::size_t row = 0; row < part.size; ++row) visit(rows_of(part)[row]);
    }
  }

  void clear() noexcept {
    rows_.clear();
    chunks_.clear();
    free_chunk_ = none;
    size_ = 0;
  }

 private:
  static constexpr std::size_t chunk_rows = 256;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct chunk {
    std::uint32_t number;  ///< its rows are `rows_[number * chunk_rows]` and those behind
    std::uint32_t size;    ///< of them in use; not 0, but for one that `insert` is about to fill
  };
  struct place {
    std::size_t chunk;  ///< index in `chunks_`
    std::size_t row;
  };

  [[nodiscard]] address_range* rows_of(const chunk& part) noexcept { return rows_.data() + part.number * chunk_rows; }
  [[nodiscard]] const address_range* rows_of(const chunk& part) const noexcept { return rows_.data() + part.number * chunk_rows; }
  [[nodiscard]] address_range& row_at(const place& at) noexcept { return rows_of(chunks_[at.chunk])[at.row]; }

  /// The place of the first range that ends behind `address`; in the chunk after the last if there is none.
  [[nodiscard]] place first_behind(std::uint64_t address) const noexcept {
    const std::size_t found = partition_point(
        chunks_.size(), [&](std::size_t index) { return rows_of(chunks_[index])[chunks_[index].size - 1].end <= address; });
    if (found == chunks_.size()) return {found, 0};
    const address_range* const rows = rows_of(chunks_[found]);
    return {found, partition_point(chunks_[found].size, [&](std::size_t row) { return rows[row].end <= address; })};
  }

  /// Where a range belongs; if between two chunks, in one that has room.
  [[nodiscard]] place place_for(const address_range& added) noexcept {
    if (chunks_.empty()) {
      add_chunk(0);
      return {0, 0};
    }
    const place at = first_behind(added.begin);
    const bool may_be_before = at.row == 0 && at.chunk != 0;
    if (at.chunk == chunks_.size() || (may_be_before && chunks_[at.chunk - 1].size < chunk_rows)) {
      return {at.chunk - 1, chunks_[at.chunk - 1].size};
    }
    return at;
  }

  /// Makes room in a full chunk; where the place is then. At its ends, as where addresses rise or fall, nothing moves.
  [[nodiscard]] place split(const place& at) noexcept {
    if (at.row == 0 || at.row == chunk_rows) {
      const std::size_t added = at.row == 0 ? at.chunk : at.chunk + 1;
      add_chunk(added);
      return {added, 0};
    }
    constexpr std::size_t half = chunk_rows / 2;
    add_chunk(at.chunk + 1);
    chunk& full = chunks_[at.chunk];
    chunk& next = chunks_[at.chunk + 1];
    std::memcpy(rows_of(next), rows_of(full) + half, half * sizeof(address_range));
    full.size = next.size = half;
    return at.row <= half ? at : place{at.chunk + 1, at.row - half};
  }

  /// Adds an empty chunk before the one at `index`.
  void add_chunk(std::size_t index) noexcept {
    std::uint32_t number = free_chunk_;
    if (number == none) {
      number = static_cast<std::uint32_t>(rows_.size() / chunk_rows);
      (void)rows_.resize(rows_.size() + chunk_rows);  // `make_room` has reserved it
    } else {
      free_chunk_ = static_cast<std::uint32_t>(rows_[number * chunk_rows].begin);
    }
    (void)chunks_.push_back({});
    chunk* const added = chunks_.data() + index;
    std::memmove(added + 1, added, (chunks_.size() - 1 - index) * sizeof(chunk));
    *added = {number, 0};
  }

  /// Removes the rows of a chunk from `first` to `last`. False if it was dropped, because none is left.
  bool remove(const place& first, std::size_t last) noexcept {
    chunk& from = chunks_[first.chunk];
    address_range* const rows = rows_of(from);
    std::memmove(rows + first.row, rows + last, (from.size - last) * sizeof(address_range));
    from.size -= static_cast<std::uint32_t>(last - first.row);
    size_ -= last - first.row;
    if (from.size != 0) return true;
    rows->begin = free_chunk_;
    free_chunk_ = from.number;
    chunks_.erase(first.chunk);
    return false;
  }

  page_array<address_range> rows_;   ///< of all chunks
  page_array<chunk> chunks_;         ///< in the order of their addresses
  std::uint32_t free_chunk_ = none;  ///< a chunk without ranges, whose first row begins with the next one's number
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
