#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_options.hpp>

#include <cstddef>

/// @file
/// What kind of memory space it is, and which of them matter most.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether any block of the space was recorded on cores.
[[nodiscard]] inline bool has_blocks_on_cores(const space_profile& space) { return !space.cores.ranges.empty(); }

/// Whether the device has such memory on each of its cores, even if none of it was used.
[[nodiscard]] inline bool has_cores(const space_profile& space) {
  return has_blocks_on_cores(space) || space.capacity_is_per_core;
}

[[nodiscard]] inline bool is_full(const space_profile& space) {
  return space.first_shortfall.requested != 0 || !space.out_of_memory.empty();
}

[[nodiscard, gnu::cold]] inline bool has_anything(const space_profile& space) {
  return space.cumulative_peak != 0 || space.reserved.peak != 0 || is_full(space) || space.cumulative_current != 0;
}

/// The numbers of the spaces, most relevant first: the requested one, then those that were full, then by peak. Throws
/// `memprof::error` if the requested space does not exist.
[[nodiscard, gnu::cold]] inline vector<std::size_t> space_order(const profile& source, const text_options& options) {
  const space_profile* const chosen = options.primary_space.empty() ? nullptr : &source.space(options.primary_space);
  return row_order(source.spaces.size(), [&](std::size_t left_number, std::size_t right_number) {
    const space_profile& left = source.spaces[left_number];
    const space_profile& right = source.spaces[right_number];
    if ((&left == chosen) != (&right == chosen)) return &left == chosen;
    if (is_full(left) != is_full(right)) return is_full(left);
    return left.cumulative_peak > right.cumulative_peak;
  });
}

/// Whether the answers are about one of several spaces, and so have to name it.
[[nodiscard, gnu::cold]] inline bool are_several(const profile& source, const vector<std::size_t>& order,
                                                 const text_options& options) {
  if (order.size() < 2) return false;
  bool is_any_used = options.all_spaces;
  for (std::size_t index = 1; index < order.size(); ++index)
    is_any_used = is_any_used || has_anything(source.spaces[order[index]]);
  return is_any_used;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
