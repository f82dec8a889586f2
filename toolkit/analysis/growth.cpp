#include <memprof/config.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>
#include <memprof/toolkit/analysis/growth.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

constexpr auto most_parts = static_cast<std::int64_t>(detail::step_ends::max_parts);

std::size_t parts_of(std::int64_t steps) { return static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, most_parts)); }

}  // namespace

growth_series::growth_series(std::int64_t steps)
    : steps_{steps}, parts_(parts_of(std::max<std::int64_t>(steps, 0)), {std::numeric_limits<std::int64_t>::max(), 0}) {}

std::size_t growth_series::part_of(std::int64_t step) const noexcept {
  __extension__ using wide = __int128;
  return static_cast<std::size_t>(wide{step} * static_cast<std::int64_t>(parts_.size()) / steps_);
}

std::int64_t growth_series::begin_of(std::size_t part) const noexcept {
  __extension__ using wide = __int128;
  const auto parts = static_cast<std::int64_t>(parts_.size());
  return static_cast<std::int64_t>((wide{static_cast<std::int64_t>(part)} * steps_ + parts - 1) / parts);
}

void growth_series::add(std::int64_t bytes, std::int64_t step) {
  step = std::min(step, steps_);
  if (step <= seen_) return;
  if (seen_ == 0) first_ = bytes;
  last_ = bytes;
  for (std::size_t part = part_of(seen_); part <= part_of(step - 1); ++part) {
    parts_[part] = {std::min(parts_[part].least, bytes), std::max(parts_[part].most, bytes)};
  }
  seen_ = step;
}

growth growth_series::judge() const {
  growth found;
  found.first = first_;
  found.last = last_;
  if (steps_ < least_steps || seen_ < steps_) return found;
  const detail::growth_stretch trend = detail::judge_parts(parts_.data(), parts_.size());
  found.kind = trend.kind;
  found.since_step = begin_of(trend.start);
  found.until_step = begin_of(trend.last + 1) - 1;
  found.is_after_first = trend.start == 0 && trend.last == 1;
  if (trend.kind == growth_kind::grows)
    found.per_step = static_cast<double>(trend.bytes) / static_cast<double>(begin_of(trend.end) - found.since_step);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
