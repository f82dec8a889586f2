#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>
#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/tally.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct frame_parts;
}

/// What a caching allocator has taken from the device and not given back, as ranges of addresses: an allocator may give back
/// another range than it took, as expandable segments do. An event costs a step for each range behind its own; there are some
/// thousand at most.
class reserved_ledger {
 public:
  /// What lies in the range already counts as given back. False if the event must be rejected: no bytes, a range beyond the last
  /// address, or the totals or the system have no room for it.
  [[nodiscard]] bool reserve(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t end = address + bytes;
    if (bytes == 0 || end < address || !ranges_.reserve(ranges_.size() + 2)) return false;
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - current())) return false;
    is_used_ = true;
    const std::uint64_t replaced = erase(address, end);
    if (replaced != 0) replaced_reservations.add(replaced);
    insert(first_behind(address), {address, end});
    level_.change(static_cast<std::int64_t>(bytes));
    return true;
  }

  /// Gives back the part of the range that is held; the rest is counted. `bytes` 0: all of the range that begins at `address`.
  /// False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool release(std::uint64_t address, std::uint64_t bytes) noexcept {
    if (!ranges_.reserve(ranges_.size() + 1)) return false;
    is_used_ = true;
    if (bytes == 0) bytes = bytes_from(address);
    const std::uint64_t end = address + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - address);
    const std::uint64_t released = bytes == 0 ? 0 : erase(address, end);
    if (bytes == 0 || released < bytes) unmatched_releases.add(bytes - released);
    return true;
  }

  /// Ends the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { level_.compact(history); }

  /// Whether any event came.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// How many ranges are held.
  [[nodiscard]] std::size_t ranges() const noexcept { return ranges_.size(); }
  [[nodiscard]] std::int64_t current() const noexcept { return level_.current(); }
  [[nodiscard]] std::int64_t peak() const noexcept { return level_.peak(); }
  /// What is held, in each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return ranges_.bytes() + level_.bytes(); }

  tally unmatched_releases;
  tally replaced_reservations;

 private:
  friend struct detail::frame_parts;

  struct range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  /// The first range that ends behind `address`.
  [[nodiscard]] std::size_t first_behind(std::uint64_t address) const noexcept {
    return detail::partition_point(ranges_.size(), [&](std::size_t index) { return ranges_[index].end <= address; });
  }

  /// The size of the range that begins at `address`, or 0.
  [[nodiscard]] std::uint64_t bytes_from(std::uint64_t address) const noexcept {
    const std::size_t index = first_behind(address);
    return index != ranges_.size() && ranges_[index].begin == address ? ranges_[index].end - address : 0;
  }

  /// Takes [begin, end) out of the ranges and returns how many bytes of it were in them. There is room for one range more.
  std::uint64_t erase(std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t erased = 0;
    const std::size_t first = first_behind(begin);
    std::size_t last = first;
    for (; last < ranges_.size() && ranges_[last].begin < end; ++last) {
      erased += std::min(end, ranges_[last].end) - std::max(begin, ranges_[last].begin);
    }
    if (first == last) return 0;
    const range left{ranges_[first].begin, begin};
    const range right{end, ranges_[last - 1].end};
    remove(first, last);
    if (right.begin < right.end) insert(first, right);
    if (left.begin < left.end) insert(first, left);
    level_.change(-static_cast<std::int64_t>(erased));
    return erased;
  }

  void insert(std::size_t index, const range& added) noexcept {
    (void)ranges_.push_back(added);  // its callers have made room
    range* const place = ranges_.data() + index;
    std::memmove(place + 1, place, (ranges_.size() - 1 - index) * sizeof(range));
    *place = added;
  }

  void remove(std::size_t first, std::size_t last) noexcept {
    std::memmove(ranges_.data() + first, ranges_.data() + last, (ranges_.size() - last) * sizeof(range));
    for (std::size_t count = last - first; count > 0; --count) ranges_.pop_back();
  }

  detail::page_array<range> ranges_;  ///< disjoint, by address
  byte_level level_;
  bool is_used_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI
