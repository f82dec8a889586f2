#include <memprof/config.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/frame_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

void frame_blocks::finish() {
  const std::size_t room = max_rows_ - std::min(max_rows_, at_peak_.size());
  if (rows_.size() > room) keep_largest(room);
  rows_.insert(rows_.end(), at_peak_.begin(), at_peak_.end());
  at_peak_.clear();
  std::sort(rows_.begin(), rows_.end(), [](const row& left, const row& right) {
    return left.begin.event != right.begin.event ? left.begin.event < right.begin.event : left.address < right.address;
  });
}

void frame_blocks::offer(const page_block& block, std::size_t slot, const moment& end, bool stays) {
  const moment begin = block.born.event < begin_.event ? begin_ : block.born;
  const row offered{begin, end, block.address, block.bytes, static_cast<std::uint32_t>(slot), block.annotation, stays};
  if ((block.marks & mark_) != 0) {
    at_peak_.push_back(offered);
  } else if (weight_of(offered) > least_kept_ || rows_.size() < max_rows_) {
    rows_.push_back(offered);
    if (rows_.size() == 2 * max_rows_) keep_largest(max_rows_);
  }
}

void frame_blocks::keep_largest(std::size_t count) {
  const auto heavier = [](const row& left, const row& right) {
    const double of_left = weight_of(left);
    const double of_right = weight_of(right);
    return of_left != of_right ? of_left > of_right : left.begin.event < right.begin.event;
  };
  if (count != 0) {
    const auto last = rows_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(rows_.begin(), last, rows_.end(), heavier);
    least_kept_ = weight_of(*last);
  }
  rows_.resize(count);
}

double frame_blocks::weight_of(const row& block) noexcept {
  return static_cast<double>(block.bytes) * static_cast<double>(block.end.event - block.begin.event);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
