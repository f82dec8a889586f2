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
constexpr std::int64_t steps_per_part = 8;  ///< in a short run, whose parts are as few as 8
constexpr std::size_t least_rises = 4;
constexpr std::size_t parts_of_four = 8;  ///< the fewest that are judged

std::size_t parts_of(std::int64_t steps) {
  const std::int64_t few = std::min(steps, growth_series::least_steps);
  return static_cast<std::size_t>(std::clamp(steps / steps_per_part, few, most_parts));
}

/// The parts in which a series that never falls rises.
std::vector<std::size_t> rises_of(const std::vector<std::int64_t>& kept) {
  std::vector<std::size_t> rises;
  for (std::size_t part = 1; part < kept.size(); ++part) {
    if (kept[part] > kept[part - 1]) rises.push_back(part);
  }
  return rises;
}

/// Where the last stretch begins in which no rise is far from the one before.
std::size_t begin_of_growth(const std::vector<std::size_t>& rises) {
  std::vector<std::size_t> gaps;
  for (std::size_t index = 1; index < rises.size(); ++index) gaps.push_back(rises[index] - rises[index - 1]);
  if (gaps.empty()) return 0;
  std::vector<std::size_t> sorted = gaps;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const std::size_t most = 4 * std::max<std::size_t>(1, sorted[sorted.size() / 2]);
  std::size_t begin = 0;
  for (std::size_t index = 0; index < gaps.size(); ++index) {
    if (gaps[index] > most) begin = index + 1;
  }
  return begin;
}

/// The last stretch of growth in a series of parts.
struct stretch {
  growth_kind kind = growth_kind::level;
  std::size_t start = 0;  ///< the part before its first rise
  std::size_t last = 0;   ///< the part of its last rise
  std::size_t parts = 0;
  std::int64_t bytes = 0;
};

/// `least` and `most`: the bytes of each part.
stretch stretch_of(const std::vector<std::int64_t>& least, const std::vector<std::int64_t>& most) {
  std::vector<std::int64_t> kept = least;
  for (std::size_t part = kept.size() - 1; part > 0; --part) kept[part - 1] = std::min(kept[part - 1], kept[part]);
  stretch found;
  found.parts = kept.size();
  const std::vector<std::size_t> rises = rises_of(kept);
  if (rises.empty()) return found;
  found.kind = growth_kind::levels_off;
  const std::size_t begin = begin_of_growth(rises);
  found.start = rises[begin] - 1;
  found.last = rises.back();
  found.bytes = kept.back() - kept[found.start];
  if (rises.size() - begin < least_rises) return found;

  std::size_t widest = 1;
  for (std::size_t index = begin + 1; index < rises.size(); ++index) widest = std::max(widest, rises[index] - rises[index - 1]);
  if (found.parts - 1 - found.last > 2 * widest) return found;
  const std::size_t middle = found.start + (found.parts - found.start) / 2;
  if (kept.back() - kept[middle] < (kept[middle] - kept[found.start]) / 2) return found;

  std::int64_t risen = 0;
  std::int64_t fallen = 0;
  for (std::size_t part = found.start + 1; part < found.parts; ++part) {
    const std::int64_t change = least[part] - least[part - 1];
    (change > 0 ? risen : fallen) += change;
  }
  const std::size_t span = found.parts - 1 - found.start;
  if (fallen == 0) {
    const auto before = most.begin() + static_cast<std::ptrdiff_t>(found.start);
    const std::int64_t record = before == most.begin() ? 0 : *std::max_element(most.begin(), before);
    if (span * 8 < found.parts || kept.back() <= record) return found;
  } else if (span * 4 < found.parts * 3 || risen / 8 < -fallen) {
    return found;
  }
  found.kind = growth_kind::grows;
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
  if (fine.kind == growth_kind::grows || least_.size() < 4 * parts_of_four) return found;
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
