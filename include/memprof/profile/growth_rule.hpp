#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/ledger/step_ends.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// Whether bytes that are read at the same point of every step grow without end.

namespace memprof::inline MEMPROF_ABI {

/// What bytes do over the steps of a run.
enum class growth_kind : std::uint8_t {
  level,       ///< they return to what they were
  levels_off,  ///< they grew, but stopped: a cache that is full, a pool that is warm, state made in the first steps
  unclear,     ///< they grew until the end, but too few times, or not for long enough
  grows,       ///< they still grow at the end of the run
};

/// Its name in JSON.
[[nodiscard]] constexpr std::string_view to_string(growth_kind kind) noexcept {
  constexpr std::string_view names[] = {"level", "levels_off", "unclear", "grows"};
  return names[static_cast<std::size_t>(kind)];
}

namespace detail {

/// The last stretch of growth in a run that is divided into parts.
struct growth_stretch {
  growth_kind kind = growth_kind::level;
  std::size_t start = 0;  ///< the part before its first rise
  std::size_t last = 0;   ///< the part of its last rise
  std::size_t end = 0;    ///< the last part of the run
  std::int64_t bytes = 0;
  bool is_noisy = false;  ///< it also falls, or is no more than there was before
};

/// The rule for up to 64 parts, see `judge_parts`.
class growth_rule {
 public:
  static constexpr std::size_t least_parts = 8;

  growth_rule(const part_bytes* parts, std::size_t count) noexcept : parts_(parts), count_(count) {}

  [[nodiscard, gnu::cold]] growth_stretch judge() noexcept {
    growth_stretch found;
    for (std::size_t part = count_; part-- > 0;)
      kept_[part] = part + 1 == count_ ? parts_[part].least : std::min(parts_[part].least, kept_[part + 1]);
    for (std::size_t part = 1; part < count_; ++part) {
      if (kept_[part] > kept_[part - 1]) rises_[rise_count_++] = part;
    }
    found.end = count_ - 1;
    if (rise_count_ == 0) return found;
    const std::size_t begin = begin_of_growth();
    found = judge_from(begin, &part_bytes::most);
    // Behind what was set up in the first eighth of the run, which may be far more than what grows later.
    for (std::size_t later = begin + 1; found.kind != growth_kind::grows && rise_count_ - later >= 2 * least_rises; ++later) {
      if (rises_[later] - 1 > count_ / 8) break;
      if (!is_setup(begin, later)) continue;
      if (const growth_stretch behind = judge_from(later, &part_bytes::least); behind.kind == growth_kind::grows) found = behind;
    }
    return found;
  }

 private:
  static constexpr std::size_t least_rises = 4;
  static constexpr std::size_t fewest_of_noise = 32;  ///< parts: in fewer, numbers rise by chance

  /// The verdict if growth begins with the rise of that number. Behind a setup, whose parts have what comes and goes as well,
  /// their least bytes are what there was before.
  [[nodiscard, gnu::cold]] growth_stretch judge_from(std::size_t begin, std::int64_t part_bytes::*before) const noexcept {
    growth_stretch found;
    found.end = count_ - 1;
    found.start = rises_[begin] - 1;
    found.last = rises_[rise_count_ - 1];
    const std::int64_t last_kept = kept_[count_ - 1];
    found.bytes = last_kept - kept_[found.start];

    std::int64_t risen = 0;
    std::int64_t fallen = 0;
    std::int64_t fallen_before = 0;
    std::int64_t record = 0;
    for (std::size_t part = 1; part < count_; ++part) {
      const std::int64_t change = parts_[part].least - parts_[part - 1].least;
      std::int64_t& falls = part <= found.start ? fallen_before : fallen;
      if (change < 0) falls = add_saturating(falls, -change);
      if (change > 0 && part > found.start) risen = add_saturating(risen, change);
    }
    for (std::size_t part = 0; part < found.start; ++part) record = std::max(record, parts_[part].*before);
    found.is_noisy = fallen != 0 || fallen_before >= found.bytes || last_kept <= record;

    std::size_t widest = 1;
    for (std::size_t index = begin + 1; index < rise_count_; ++index)
      widest = std::max(widest, rises_[index] - rises_[index - 1]);
    const bool is_at_end = found.end - found.last <= (widest == 1 ? 1 : 2 * widest);
    const std::size_t middle = found.start + (count_ - found.start) / 2;
    const std::size_t rises = rise_count_ - begin;
    const bool is_often = rises >= least_rises;
    // A queue that has been full for a quarter of the run grew half as much in the second half; so may what is rare, where one
    // rise more or less decides.
    const std::int64_t first_half = kept_[middle] - kept_[found.start];
    const std::int64_t second_half = last_kept - kept_[middle];
    const std::int64_t one_rise = found.bytes / static_cast<std::int64_t>(rises);
    const bool is_even = second_half >= first_half / 2 && second_half >= first_half - first_half / 4 - one_rise;
    const std::size_t span = found.end - found.start;
    const bool is_long = found.is_noisy ? span * 4 >= count_ * 3 && risen / 8 >= fallen : span * 8 >= count_;
    if (is_at_end && is_even && is_often && is_long && (!found.is_noisy || fallen != 0)) {
      found.kind = growth_kind::grows;
    } else if (found.is_noisy && fallen == 0 && is_at_end && is_even && is_often && count_ >= fewest_of_noise &&
               span * 4 >= count_) {
      found.kind = growth_kind::unclear;  // what was emptied once, or will be from time to time
    } else if (found.is_noisy) {
      settle(found);
    } else {
      // One rise is state that was made once; many that become smaller are a cache that is nearly full.
      const bool is_open = is_often ? is_even : rises > 1;
      found.kind = !is_at_end        ? growth_kind::levels_off
                   : is_open         ? growth_kind::unclear
                   : rise_count_ > 1 ? growth_kind::levels_off
                                     : growth_kind::level;
    }
    return found;
  }

  /// Where the last stretch begins: behind the last gap between rises that is far wider than all gaps after it.
  [[nodiscard, gnu::cold]] std::size_t begin_of_growth() const noexcept {
    std::size_t widest_after = 0;
    for (std::size_t index = rise_count_ - 1; index > 0; --index) {
      const std::size_t gap = rises_[index] - rises_[index - 1];
      if (widest_after != 0 && gap > 4 * widest_after) return index;
      widest_after = std::max(widest_after, gap);
    }
    return 0;
  }

  /// Whether the rises from `begin` to before `later` are on average at least four times as high as the ones from there on.
  [[nodiscard, gnu::cold]] bool is_setup(std::size_t begin, std::size_t later) const noexcept {
    const std::int64_t before = kept_[rises_[later] - 1];
    const auto setup = static_cast<double>(before - kept_[rises_[begin] - 1]) / static_cast<double>(later - begin);
    const auto growth = static_cast<double>(kept_[count_ - 1] - before) / static_cast<double>(rise_count_ - later);
    return setup >= 4 * growth;
  }

  /// What there is to say of bytes that rise and fall, but have no trend: whether most of the rise was over before the last
  /// quarter, and when.
  [[gnu::cold]] void settle(growth_stretch& found) const noexcept {
    std::int64_t low = parts_[0].least;
    std::int64_t high = low;
    for (std::size_t part = 1; part < count_; ++part) {
      low = std::min(low, parts_[part].least);
      high = std::max(high, parts_[part].least);
    }
    const std::int64_t settled = kept_[count_ * 3 / 4] - kept_[0];
    found.kind = count_ >= fewest_of_noise && settled >= (high - low) / 2 ? growth_kind::levels_off : growth_kind::level;
    found.start = rises_[0] - 1;
    found.last = rises_[0];
    while (found.last + 1 < count_ && kept_[found.last] - kept_[0] < settled - settled / 8) ++found.last;
  }

  const part_bytes* parts_;
  std::size_t count_;
  std::array<std::int64_t, step_ends::max_parts> kept_;  ///< the least of each part and all later ones
  std::array<std::size_t, step_ends::max_parts> rises_;  ///< the parts in which these are more than in the one before
  std::size_t rise_count_ = 0;
};

/// Looks at what never goes away again: the least of a part and of all later ones. That grows without end if it grew in at least
/// four parts over at least an eighth of the run, the last time in the last two parts or, where growth is rarer, at most two of
/// its intervals before the end, in the second half of that time by at least three quarters as much as in the first, or half as
/// much if it is but one rise less, and to more than there ever was before (where it was once more, that is unclear). What was
/// set up in the first eighth of the run, by rises that are four times as high as the later ones, does not count. So a table that
/// doubles when it is full grows; one that fills up, or is emptied from time to time, does not. Where the least bytes of the
/// parts also fall, they must rise over three quarters of the run and by eight times as much as they fall, in parts or in fours
/// of them: noise has no trend.
///
/// `count`: at least one and at most 64. Bytes are at least 0.
[[nodiscard, gnu::cold]] inline growth_stretch judge_parts(const part_bytes* parts, std::size_t count) noexcept {
  constexpr std::size_t width = 4;
  const growth_stretch fine = growth_rule{parts, count}.judge();
  if (fine.kind == growth_kind::grows || !fine.is_noisy || count < width * growth_rule::least_parts) return fine;
  std::array<part_bytes, (step_ends::max_parts + width - 1) / width> merged;
  std::size_t merged_count = 0;
  for (std::size_t part = 0; part < count; ++part) {
    // Of the last parts, fewer than four belong to the ones before: the least of a short time says little.
    if (part % width == 0 && (part == 0 || count - part >= width)) merged[merged_count++] = parts[part];
    part_bytes& into = merged[merged_count - 1];
    into = {std::min(into.least, parts[part].least), std::max(into.most, parts[part].most)};
  }
  growth_stretch coarse = growth_rule{merged.data(), merged_count}.judge();
  if (coarse.kind != growth_kind::grows) return fine;
  coarse.start *= width;
  coarse.last *= width;
  coarse.end *= width;
  return coarse;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
