#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a trace's source says about its numbers: by default nothing, because every number follows exactly from events.
[[nodiscard]] inline provenance provenance_of(const vector<fact_table>& facts) {
  constexpr std::size_t max_remarks = 32;  // a trace from a file may have any number
  provenance made;
  for_each_fact<source_limit>(facts, [&](source_limit& limit) {
    made.rounding = std::max(made.rounding, limit.rounding);
    made.planned = made.planned || limit.planned != 0;
    made.assumed = made.assumed || limit.assumed != 0;
    if (!limit.remark.empty() && made.remarks.size() < max_remarks) made.remarks.push_back(std::move(limit.remark));
  });
  return made;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
