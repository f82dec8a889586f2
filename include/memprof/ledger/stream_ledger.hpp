#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct frame_parts;
}

/// What was live and reserved for one stream of a device in one pool of its allocator, in bytes.
struct stream_record {
  label name;  ///< as `stream_and_pool` makes it; 0: all streams and pools beyond `stream_ledger::max_rows`
  std::int64_t live;
  std::int64_t peak_live;
  std::int64_t allocation_count;
  std::int64_t reserved;
  std::int64_t peak_reserved;
};

/// A row for each stream and pool of blocks or ranges, up to `max_rows`, and one for all others. What names no stream is in none.
class stream_ledger {
 public:
  static constexpr std::size_t max_rows = 64;

  void allocate(label name, std::int64_t bytes) noexcept {
    if (name == 0) return;
    stream_record& row = row_of(name);
    row.live = detail::add_saturating(row.live, bytes);
    row.peak_live = std::max(row.peak_live, row.live);
    ++row.allocation_count;
  }
  /// Frees more than is live if the block had another name before: no row gets negative.
  void deallocate(label name, std::int64_t bytes) noexcept {
    if (name == 0 || bytes == 0) return;
    stream_record& row = row_of(name);
    row.live -= std::min(row.live, bytes);
  }
  /// What is held for the stream grew or, if `change` is negative, shrank.
  void change_reserved(label name, std::int64_t change) noexcept {
    if (name == 0 || change == 0) return;
    stream_record& row = row_of(name);
    row.reserved = std::max(detail::add_saturating(row.reserved, change), std::int64_t{0});
    row.peak_reserved = std::max(row.peak_reserved, row.reserved);
  }

  /// In the order in which they first occurred.
  [[nodiscard]] const detail::page_array<stream_record>& rows() const noexcept { return rows_; }
  /// Those that have no row of their own. All 0 if there are none.
  [[nodiscard]] const stream_record& further() const noexcept { return further_; }
  [[nodiscard]] bool has_further() const noexcept { return has_further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }

 private:
  friend struct detail::frame_parts;

  [[nodiscard]] stream_record& row_of(label name) noexcept {
    if (last_ < rows_.size() && rows_[last_].name == name) return rows_[last_];
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      if (rows_[index].name != name) continue;
      last_ = index;
      return rows_[index];
    }
    if (rows_.size() < max_rows && rows_.push_back({name, 0, 0, 0, 0, 0})) return rows_.back();
    has_further_ = true;
    return further_;
  }

  detail::page_array<stream_record> rows_;
  stream_record further_{};
  std::size_t last_ = 0;  ///< most events have the same name as the one before
  bool has_further_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI
