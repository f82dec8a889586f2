#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/growth.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

constexpr std::int64_t most_parts = 64;
constexpr std::size_t least_rises = 4;
constexpr std::size_t parts_of_four = 8;  ///< the fewest that are judged

std::size_t parts_of(std::int64_t steps) { return static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, most_parts)); }

/// The parts in which a series that never falls rises.
std::vector<std::size_t> rises_of(const std::vector<std::int64_t>& kept) {
  std::vector<std::size_t> rises;
  for (std::size_t part = 1; part < kept.size(); ++part) {
    if (kept[part] > kept[part - 1]) rises.push_back(part);
  }
  return rises;
}

/// Where the last stretch begins: behind the last gap between rises that is far wider than all gaps after it.
std::size_t begin_of_growth(const std::vector<std::size_t>& rises) {
  std::size_t widest_after = 0;
  for (std::size_t index = rises.size() - 1; index > 0; --index) {
    const std::size_t gap = rises[index] - rises[index - 1];
    if (widest_after != 0 && gap > 4 * widest_after) return index;
    widest_after = std::max(widest_after, gap);
  }
  return 0;
}

/// The last stretch of growth in a series of parts.
struct stretch {
  growth_kind kind = growth_kind::level;
  std::size_t start = 0;  ///< the part before its first rise
  std::size_t last = 0;   ///< the part of its last rise
  std::size_t parts = 0;
  std::int64_t bytes = 0;
  bool is_noisy = false;  ///< it also falls, or is no more than there was before
};

/// What there is to say of bytes that rise and fall, but have no trend: whether most of the rise was over before the last
/// quarter.
growth_kind kind_of_noise(const std::vector<std::int64_t>& least, const std::vector<std::int64_t>& kept) {
  constexpr std::size_t fewest = 32;
  const auto [low, high] = std::minmax_element(least.begin(), least.end());
  const std::int64_t settled = kept[kept.size() * 3 / 4] - kept.front();
  return kept.size() >= fewest && settled >= (*high - *low) / 2 ? growth_kind::levels_off : growth_kind::level;
}

/// `least` and `most`: the bytes of each part.
stretch stretch_of(const std::vector<std::int64_t>& least, const std::vector<std::int64_t>& most) {
  std::vector<std::int64_t> kept = least;
  for (std::size_t part = kept.size() - 1; part > 0; --part) kept[part - 1] = std::min(kept[part - 1], kept[part]);
  stretch found;
  found.parts = kept.size();
  const std::vector<std::size_t> rises = rises_of(kept);
  if (rises.empty()) return found;
  const std::size_t begin = begin_of_growth(rises);
  found.start = rises[begin] - 1;
  found.last = rises.back();
  found.bytes = kept.back() - kept[found.start];

  std::int64_t risen = 0;
  std::int64_t fallen = 0;
  std::int64_t fallen_before = 0;
  for (std::size_t part = 1; part < found.parts; ++part) {
    const std::int64_t change = least[part] - least[part - 1];
    if (change < 0) (part <= found.start ? fallen_before : fallen) -= change;
    if (change > 0 && part > found.start) risen += change;
  }
  const auto before = most.begin() + static_cast<std::ptrdiff_t>(found.start);
  const std::int64_t record = before == most.begin() ? 0 : *std::max_element(most.begin(), before);
  found.is_noisy = fallen != 0 || fallen_before >= found.bytes || kept.back() <= record;

  std::size_t widest = 1;
  for (std::size_t index = begin + 1; index < rises.size(); ++index) widest = std::max(widest, rises[index] - rises[index - 1]);
  const bool is_at_end = found.parts - 1 - found.last <= (widest == 1 ? 1 : 2 * widest);
  const std::size_t middle = found.start + (found.parts - found.start) / 2;
  const bool is_even = kept.back() - kept[middle] >= (kept[middle] - kept[found.start]) / 2;
  const bool is_often = rises.size() - begin >= least_rises;
  const std::size_t span = found.parts - 1 - found.start;
  const bool is_long = found.is_noisy ? span * 4 >= found.parts * 3 && risen / 8 >= fallen : span * 8 >= found.parts;
  if (is_at_end && is_even && is_often && is_long && (!found.is_noisy || fallen != 0)) {
    found.kind = growth_kind::grows;
  } else if (found.is_noisy) {
    found.kind = kind_of_noise(least, kept);
  } else {
    // One rise is state that was made once; many that become smaller are a cache that is nearly full.
    const bool is_open = is_often ? is_even : rises.size() - begin > 1;
    found.kind = !is_at_end         ? growth_kind::levels_off
                 : is_open          ? growth_kind::unclear
                 : rises.size() > 1 ? growth_kind::levels_off
                                    : growth_kind::level;
  }
  return found;
}

}  // namespace

growth_series::growth_series(std::int64_t steps)
    : steps_{steps},
      least_(parts_of(std::max<std::int64_t>(steps, 0)), std::numeric_limits<std::int64_t>::max()),
      most_(least_.size()) {}

std::size_t growth_series::part_of(std::int64_t step) const noexcept {
  __extension__ using wide = __int128;
  return static_cast<std::size_t>(wide{step} * static_cast<std::int64_t>(least_.size()) / steps_);
}

std::int64_t growth_series::begin_of(std::size_t part) const noexcept {
  __extension__ using wide = __int128;
  const auto parts = static_cast<std::int64_t>(least_.size());
  return static_cast<std::int64_t>((wide{static_cast<std::int64_t>(part)} * steps_ + parts - 1) / parts);
}

void growth_series::add(std::int64_t bytes, std::int64_t step) {
  step = std::min(step, steps_);
  if (step <= seen_) return;
  if (seen_ == 0) first_ = bytes;
  last_ = bytes;
  for (std::size_t part = part_of(seen_); part <= part_of(step - 1); ++part) {
    least_[part] = std::min(least_[part], bytes);
    most_[part] = std::max(most_[part], bytes);
  }
  seen_ = step;
}

growth growth_series::judge() const {
  growth found;
  found.first = first_;
  found.last = last_;
  if (steps_ < least_steps || seen_ < steps_) return found;
  const auto describe = [&](const stretch& of, std::size_t width) {
    found.kind = of.kind;
    found.since_step = begin_of(of.start * width);
    found.until_step = begin_of(of.last * width);
    if (of.kind != growth_kind::grows) return;
    const std::int64_t steps = begin_of((of.parts - 1) * width) - found.since_step;
    found.per_step = static_cast<double>(of.bytes) / static_cast<double>(steps);
  };
  const stretch fine = stretch_of(least_, most_);
  describe(fine, 1);
  if (fine.kind == growth_kind::grows || !fine.is_noisy || least_.size() < 4 * parts_of_four) return found;
  constexpr std::size_t width = 4;
  const auto merged = [&](const std::vector<std::int64_t>& parts, auto choose) {
    std::vector<std::int64_t> wide;
    for (std::size_t part = 0; part < parts.size(); part += width) {
      const std::size_t end = std::min(part + width, parts.size());
      wide.push_back(
          *choose(parts.begin() + static_cast<std::ptrdiff_t>(part), parts.begin() + static_cast<std::ptrdiff_t>(end)));
    }
    return wide;
  };
  using iterator = std::vector<std::int64_t>::const_iterator;
  const stretch coarse = stretch_of(merged(least_, [](iterator a, iterator b) { return std::min_element(a, b); }),
                                    merged(most_, [](iterator a, iterator b) { return std::max_element(a, b); }));
  if (coarse.kind == growth_kind::grows) describe(coarse, width);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
