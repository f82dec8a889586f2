#pragma once

#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The blocks of one space over a stretch of a trace, in a bounded number of rows: those live at the greatest total, then those
/// with the most bytes times events.
class frame_blocks {
 public:
  struct row {
    moment begin;
    moment end;
    std::uint64_t address;
    std::int64_t bytes;
    std::uint32_t slot;  ///< of its owner
    label annotation;
    bool stays;  ///< it was not freed within the stretch
  };

  /// `mark`: the bit of `page_block::marks` that says, for this stretch, that a block was live at the greatest total.
  frame_blocks(const moment& begin, std::size_t max_rows, std::uint32_t mark) : begin_(begin), max_rows_(max_rows), mark_(mark) {}

  /// Counts a block that was there or began. Its row is made when it ends.
  void count_block() { ++count_; }

  /// Marks what is live now as live at the greatest total. `for_each(visit)` visits the blocks, all of them.
  template <class ForEach>
  void mark_peak(ForEach&& for_each) {
    std::vector<page_block*> live;
    for_each([&](page_block& block) {
      block.marks &= ~mark_;
      live.push_back(&block);
    });
    if (live.size() > max_rows_) {
      std::nth_element(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(max_rows_), live.end(),
                       [](const page_block* left, const page_block* right) {
                         return left->bytes != right->bytes ? left->bytes > right->bytes : left->born.event < right->born.event;
                       });
      live.resize(max_rows_);
    }
    for (page_block* const block : live) block->marks |= mark_;
  }

  void ended(const page_block& block, std::size_t slot, const moment& end) { offer(block, slot, end, false); }
  /// The same for a block that is live when the stretch ends.
  void stayed(const page_block& block, std::size_t slot, const moment& end) { offer(block, slot, end, true); }

  /// Call after the last event.
  void finish();

  [[nodiscard]] const std::vector<row>& rows() const noexcept { return rows_; }
  /// All blocks of the stretch, including those without a row.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  void offer(const page_block& block, std::size_t slot, const moment& end, bool stays);

  void keep_largest(std::size_t count);

  [[nodiscard]] static double weight_of(const row& block) noexcept;

  moment begin_;
  std::size_t max_rows_;
  std::uint32_t mark_;
  std::uint64_t count_ = 0;
  double least_kept_ = -1;
  std::vector<row> rows_;
  std::vector<row> at_peak_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
