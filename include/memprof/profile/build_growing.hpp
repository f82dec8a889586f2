#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>
#include <memprof/profile/owner_growth.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The part of `profile/build.hpp` that says who grows. A template for the reason given there.

namespace memprof::inline MEMPROF_ABI::detail {

/// The fewest steps for a verdict.
inline constexpr std::uint64_t least_steps_of_growth = 8;

/// What one owner does.
[[nodiscard, gnu::cold]] inline growth_stretch judge_owner(const step_ends& ends, std::size_t index) noexcept {
  if (ends.count() < least_steps_of_growth) return {};
  return judge_parts(ends.parts(index), ends.part_count());
}

/// The numbers of an owner that grows.
struct growth_numbers {
  double per_step;
  std::int64_t since_step;
  std::int64_t within_steps;
  std::int64_t steps;
};

[[nodiscard, gnu::cold]] inline growth_numbers numbers_of(const step_ends& ends, const growth_stretch& trend) noexcept {
  const auto width = static_cast<std::int64_t>(ends.width());
  const auto missed = static_cast<std::int64_t>(ends.choice().first);
  const auto start = static_cast<std::int64_t>(trend.start);
  const auto parts = static_cast<std::int64_t>(trend.end) - start;
  return {static_cast<double>(trend.bytes) / static_cast<double>(width * parts),
          start == 0 && missed != 0 ? -1 : missed + start * width, width, missed + static_cast<std::int64_t>(ends.count())};
}

/// `paths` are those of the operations.
template <class Ends>
[[nodiscard, gnu::cold]] vector<owner_growth> build_growing(const Ends& ends, const vector<std::string>& paths) {
  vector<owner_growth> found;
  for (const std::size_t index : row_order(ends.owners().size(), [&](std::size_t left, std::size_t right) {
         return ends.owners()[left] < ends.owners()[right];
       })) {
    const growth_stretch trend = judge_owner(ends, index);
    if (trend.kind != growth_kind::grows) continue;
    const std::uint32_t owner = ends.owners()[index];
    const growth_numbers numbers = numbers_of(ends, trend);
    found.push_back({owner == step_ends::reserved_owner ? std::string{reserved_beyond_blocks} : paths[owner], numbers.per_step,
                     numbers.since_step, numbers.within_steps, numbers.steps});
  }
  vector<owner_growth> sorted;
  for (const std::size_t index : row_order(
           found.size(), [&](std::size_t left, std::size_t right) { return found[left].per_step > found[right].per_step; })) {
    sorted.push_back(found[index]);
  }
  return sorted;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
