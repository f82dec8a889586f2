#include <memprof/config.hpp>
#include <memprof/toolkit/page/address_regions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void address_regions::add(std::uint64_t address, std::int64_t bytes) {
  constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t begin = address;
  const std::uint64_t end =
      begin + std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1)), greatest - begin);
  if (last_ < regions_.size() && regions_[last_].begin <= begin && end <= regions_[last_].end) return;
  insert(begin, end);
  if (regions_.size() > 2 * max_regions) join_nearest();
}

void address_regions::finish() {
  if (regions_.size() > max_regions) join_nearest();
  std::uint64_t offset = 0;
  for (region& each : regions_) {
    each.offset = offset;
    offset += each.end - each.begin;
  }
}

std::uint64_t address_regions::offset_of(std::uint64_t address) const noexcept {
  const auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                      [](std::uint64_t value, const region& each) { return value < each.begin; });
  if (after == regions_.begin()) return 0;
  const region& found = *std::prev(after);
  return found.offset + (address - found.begin);
}

void address_regions::insert(std::uint64_t begin, std::uint64_t end) {
  const auto first = std::lower_bound(regions_.begin(), regions_.end(), begin, [](const region& each, std::uint64_t value) {
    return each.end < value && value - each.end > least_gap;
  });
  auto behind = first;
  for (; behind != regions_.end() && (behind->begin <= end || behind->begin - end <= least_gap); ++behind) {
    begin = std::min(begin, behind->begin);
    end = std::max(end, behind->end);
  }
  last_ = static_cast<std::size_t>(first - regions_.begin());
  if (first == behind) {
    regions_.insert(first, {begin, end, 0});
  } else {
    *first = {begin, end, 0};
    regions_.erase(first + 1, behind);
  }
}

void address_regions::join_nearest() {
  std::vector<std::uint64_t> gaps;
  for (std::size_t index = 1; index < regions_.size(); ++index) gaps.push_back(regions_[index].begin - regions_[index - 1].end);
  const auto widest_joined = gaps.begin() + static_cast<std::ptrdiff_t>(regions_.size() - max_regions - 1);
  std::nth_element(gaps.begin(), widest_joined, gaps.end());
  const std::uint64_t limit = *widest_joined;
  std::vector<region> joined;
  for (const region& each : regions_) {
    if (!joined.empty() && each.begin - joined.back().end <= limit) {
      joined.back().end = each.end;
    } else {
      joined.push_back(each);
    }
  }
  regions_ = std::move(joined);
  last_ = 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
