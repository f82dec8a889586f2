#include <memprof/config.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/frame_invocations.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void frame_invocations::finish() {
  share_rows();
  std::sort(rows_.begin(), rows_.end(), [](const row& left, const row& right) {
    return std::tie(left.begin.event, left.depth, left.thread) < std::tie(right.begin.event, right.depth, right.thread);
  });
}

void frame_invocations::share_rows() {
  std::vector<row> single;
  for (const row& each : rows_) {
    if (each.count == 1) single.push_back(each);
  }
  if (single.size() <= max_rows_) return;
  const auto last = single.begin() + static_cast<std::ptrdiff_t>(max_rows_ - 1);
  std::nth_element(single.begin(), last, single.end(), is_longer{});
  const row shortest = *last;

  std::sort(rows_.begin(), rows_.end(), [](const row& left, const row& right) {
    return std::tie(left.thread, left.depth, left.begin.event) < std::tie(right.thread, right.depth, right.begin.event);
  });
  std::vector<row> kept;
  std::vector<std::int64_t> deltas;
  bool may_share = false;  // with the last one kept
  shared_ = 0;
  for (const row& each : rows_) {
    const bool has_own_row = each.count == 1 && !is_longer{}(shortest, each);
    const bool goes_on = !has_own_row && may_share && kept.back().thread == each.thread && kept.back().depth == each.depth;
    if (goes_on) {
      row& open = kept.back();
      if (each.end.event > open.end.event) open.end = each.end;
      if (open.operation != each.operation) open.operation = 0;
      open.count += each.count;
      for (std::size_t space = 0; space < spaces_; ++space) deltas[open.deltas + space] += deltas_[each.deltas + space];
      continue;
    }
    kept.push_back(each);
    kept.back().deltas = deltas.size();
    for (std::size_t space = 0; space < spaces_; ++space) deltas.push_back(deltas_[each.deltas + space]);
    may_share = !has_own_row;
    shared_ += has_own_row ? 0 : 1;
  }
  rows_ = std::move(kept);
  deltas_ = std::move(deltas);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
