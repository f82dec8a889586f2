#pragma once

#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What the source of a trace says of its numbers: by default nothing, since every number follows from events, to the byte.
[[nodiscard]] inline provenance provenance_of(const std::vector<fact_table>& facts) {
  constexpr std::size_t most_remarks = 32;  // a trace from a file may have any number
  provenance made;
  for (source_limit& limit : rows_of<source_limit>(facts)) {
    made.rounding = std::max(made.rounding, limit.rounding);
    made.planned = made.planned || limit.planned != 0;
    if (!limit.remark.empty() && made.remarks.size() < most_remarks) made.remarks.push_back(std::move(limit.remark));
  }
  return made;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
