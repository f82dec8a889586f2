#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <cstdint>

/// @file
/// The answer to "whose work was it": how much no operation asked for, and how much is only assumed to be an operation's.

namespace memprof::inline MEMPROF_ABI::detail {

/// What outermost operations, with all within them, allocated in a space.
struct operation_share {
  std::int64_t allocated = 0;
  std::int64_t inferred = 0;
};

[[nodiscard, gnu::cold]] inline operation_share share_of_operations(const profile& source, const space_profile& space) {
  operation_share sum;
  for (const operation_profile& operation : source.operations) {
    if (operation.parent >= 0) continue;
    for (const operation_usage& usage : operation.usage) {
      if (usage.space != space.name) continue;
      sum.allocated = add_saturating(sum.allocated, usage.allocated);
      sum.inferred = add_saturating(sum.inferred, usage.inferred);
    }
  }
  return sum;
}

/// "34.0 % of the bytes allocated had no operation; ...", if there are operations and it is more than a tenth; "12.0 % of the
/// bytes allocated are in an operation that was inferred".
[[gnu::cold]] inline void worker_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  const operation_share of_operations = share_of_operations(topic.source, space);
  const std::int64_t without = space.allocations - of_operations.allocated;
  marked_text& lines = section.lines;
  if (of_operations.allocated != 0 && without > space.allocations / 10) {
    lines.add_share(without, space.allocations).add(" of the bytes allocated had no operation");
    if (of_operations.inferred == 0) lines.add("; if other threads allocate them: adopt_operation, or infer_operations");
    lines.end_line();
  }
  if (of_operations.inferred != 0) {
    lines.add_share(of_operations.inferred, space.allocations);
    lines.add(" of the bytes allocated are in an operation that was inferred (infer_operations)").end_line();
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
