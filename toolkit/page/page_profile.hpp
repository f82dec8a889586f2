#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>

#include <cstddef>
#include <vector>

/// @file
/// The profile of a page: of a run with many segments, only those that readers will look for.

namespace memprof::inline MEMPROF_ABI::detail {

/// The segments of a run that a page has.
struct page_segments {
  std::vector<std::size_t> numbers;  ///< ascending, from 0
  std::size_t count = 0;             ///< in the whole run
};

/// Removes from a profile the segments that its page will not have.
page_segments cut_segments(profile& of);

/// The profile as JSON, in which only the greatest segments of each space have live sets.
[[nodiscard]] nlohmann::ordered_json profile_for_page(const profile& of);

}  // namespace memprof::inline MEMPROF_ABI::detail
