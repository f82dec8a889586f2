#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What a recording has and another program's format has no place for, as sentences.

namespace memprof::inline MEMPROF_ABI::detail {

template <class Predicate>
[[nodiscard]] bool has_space(const profile& run, Predicate is_such) {
  return std::any_of(run.spaces.begin(), run.spaces.end(), is_such);
}

/// "the tables of facts stacks, missing_sources, torch_segments and 2 others"; nothing without tables. `kept` is one that the
/// format has.
inline void add_lost_facts(std::vector<std::string>& lost, const profile& run, std::string_view kept) {
  constexpr std::size_t most_named = 3;
  std::string names;
  std::size_t count = 0;
  for (const fact_table& table : run.facts) {
    if (table.name == kept || table.rows.empty()) continue;
    if (++count <= most_named) names += (names.empty() ? "" : ", ") + table.name;
  }
  if (count == 0) return;
  if (count > most_named)
    names += " and " + std::to_string(count - most_named) + (count == most_named + 1 ? " other" : " others");
  lost.push_back((count == 1 ? "the table of facts " : "the tables of facts ") + names);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
