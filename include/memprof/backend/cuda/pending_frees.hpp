#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>
#include <memprof/trace/event.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A block that was freed on a stream which may not have come that far.
struct pending_free {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stream;  ///< of a thread's default stream, an address of the thread's own
  std::uint32_t context;
  space_id space;
};

/// Blocks freed on streams, by address, until something shows that the stream has passed the free: a synchronisation, or the
/// driver giving the memory to another block. None overlap, so there are no more than the pools have room for.
class pending_frees {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

  /// Adds one that overlaps with none. False if the system has no memory.
  [[nodiscard]] bool add(const pending_free& added) noexcept {
    const std::size_t at = first_behind(added.address);
    if (!rows_.push_back(added)) return false;
    std::memmove(rows_.data() + at + 1, rows_.data() + at, (rows_.size() - 1 - at) * sizeof(pending_free));
    rows_[at] = added;
    return true;
  }

  /// Removes those that overlap with [address, address + bytes), and calls `ended` for each.
  template <class Visitor>
  void end_overlapping(std::uint64_t address, std::uint64_t bytes, Visitor&& ended) noexcept {
    const std::size_t first = first_behind(address);
    std::size_t last = first;
    for (; last != rows_.size() && rows_[last].address < address + bytes; ++last) ended(rows_[last]);
    if (last == first) return;
    std::memmove(rows_.data() + first, rows_.data() + last, (rows_.size() - last) * sizeof(pending_free));
    rows_.truncate(rows_.size() - (last - first));
  }

  /// Removes those for which `is_ended` holds, and calls `ended` for each. Costs a pass over all.
  template <class Condition, class Visitor>
  void end_where(Condition&& is_ended, Visitor&& ended) noexcept {
    std::size_t kept = 0;
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      if (is_ended(rows_[index])) {
        ended(rows_[index]);
      } else {
        rows_[kept++] = rows_[index];
      }
    }
    rows_.truncate(kept);
  }

 private:
  /// Index of the first that ends behind `address`.
  [[nodiscard]] std::size_t first_behind(std::uint64_t address) const noexcept {
    return partition_point(rows_.size(), [&](std::size_t index) { return rows_[index].address + rows_[index].bytes <= address; });
  }

  page_array<pending_free> rows_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
