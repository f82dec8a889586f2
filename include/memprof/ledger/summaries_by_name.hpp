#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/running_summary.hpp>
#include <memprof/ledger/segment_history.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_values;

/// Numbers over the segments of each name, with one record for each row of a `segment_history`. For a space that first occurs
/// later, earlier segments count as zeros.
template <std::size_t Count>
class summaries_by_name {
 public:
  using record = std::array<running_summary, Count>;

  /// Adds the numbers of the segment last added to `history`. False if the system has no memory.
  [[nodiscard]] bool add(const segment_history& history, const std::array<std::int64_t, Count>& values) noexcept {
    const segment_mark& ended = history.marks()[history.marks().size() - 1];
    const named_segment_row& row = history.rows()[ended.row];
    if (ended.row >= known_.size() && (!known_.resize(ended.row + 1U) || !records_.resize(ended.row + 1U))) return false;
    record& sums = records_[ended.row];
    const bool begins = known_[ended.row] == 0;
    known_[ended.row] = 1;
    for (std::size_t index = 0; index < Count; ++index) {
      if (begins && row.count == 1) {
        sums[index].begin(values[index], ended.number);
        continue;
      }
      if (begins) sums[index].begin(0, row.first_number);
      sums[index].add(values[index], ended.number);
    }
    return true;
  }

  /// Adds as many segments of a row with the same numbers as its last one.
  void repeat(std::size_t row, std::uint64_t times) noexcept {
    if (row >= known_.size() || known_[row] == 0) return;
    for (running_summary& sum : records_[row]) sum.total += static_cast<int128>(sum.last) * static_cast<int128>(times);
  }

  /// The record for a row of the history; zeros if nothing was added to it.
  [[nodiscard]] record of(const segment_history& history, std::size_t row) const noexcept {
    if (row < known_.size() && known_[row] != 0) return records_[row];
    record zeros;
    for (running_summary& sum : zeros) sum.begin(0, history.rows()[row].first_number);
    return zeros;
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return known_.bytes() + records_.bytes(); }

 private:
  friend struct saved_values;

  page_array<char> known_;
  page_array<record> records_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
