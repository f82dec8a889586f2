#include <memprof/config.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/page_frame.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

frame_limits frame_limits::for_spaces(std::size_t count) const noexcept {
  if (count <= 4) return *this;
  const auto share = [&](std::size_t rows) { return std::max<std::size_t>(4 * rows / count, 16) & ~std::size_t{1}; };
  return {share(buckets), share(invocations), share(blocks)};
}

page_frame::page_frame(const moment& begins, const moment& ends, std::int64_t row_of_step,
                       const std::vector<space_outline>& outlines, const frame_limits& limits)
    : begin(begins),
      end(ends),
      step(row_of_step),
      mark(row_of_step < 0 ? 1 : 2),
      invocations(limits.invocations, outlines.size()) {
  for (const space_outline& each : outlines) {
    spaces.push_back(
        {{each.owners, each.activity, end.stamp - begin.stamp, limits.buckets}, {begin, limits.blocks, mark}, each.peak});
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
