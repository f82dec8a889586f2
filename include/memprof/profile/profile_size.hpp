#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Approximate upper bound on the memory, in bytes, of a ledger's profile. A few bytes of a trace can demand a lot: each segment
/// has a row for each space, with the largest blocks and their operations, and an operation's path contains the names of all
/// enclosing ones. Costs a pass over operations and segments.
template <class Fold>
[[nodiscard]] double max_bytes_of_profile(Fold& fold) {
  const auto& events = fold.events();
  const auto& tree = events.operations();
  vector<double> lengths(tree.size());
  double paths = 0;
  double longest = 0;
  for (std::size_t node = 1; node < tree.size(); ++node) {
    lengths[node] = lengths[tree[node].parent] + 2.0 * static_cast<double>(fold.names().text(tree[node].name).size()) + 1;
    paths += lengths[node];
    longest = std::max(longest, lengths[node]);
  }
  const double named = sizeof(live_block) + longest;
  double total = 2 * paths + static_cast<double>(tree.size() * sizeof(operation_profile));
  const checkpoint_history& checkpoints = events.checkpoints();
  total += static_cast<double>(checkpoints.marks().size() * sizeof(checkpoint)) +
           static_cast<double>(checkpoints.kept_blocks()) * named;
  for (const checkpoint_mark& mark : checkpoints.marks()) total += static_cast<double>(mark.row_count * sizeof(checkpoint_usage));
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
    const space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const auto limit = static_cast<double>(events.options().largest_blocks);
    total += static_cast<double>(events.segments().marks().size() *
                                 (sizeof(segment_usage) + sizeof(core_peaks) + sizeof(reserved_usage) + sizeof(active_usage)));
    total += static_cast<double>(events.segments().rows().size() * (sizeof(segment_summary) + sizeof(named_core_peaks) +
                                                                    sizeof(named_reserved_usage) + sizeof(named_active_usage)));
    total += static_cast<double>(space->operation_count() * sizeof(operation_usage));
    for (const segment_record& record : space->segments()) {
      // The blocks twice: live blocks are also gathered in rows of their own.
      total += 2 * std::min(limit, static_cast<double>(record.blocks_at_peak)) * named +
               static_cast<double>(record.owner_count) * named;
    }
    total += static_cast<double>(space->overall_owners().size() + space->ends_of_steps().owners().size()) * named;
  }
  total += static_cast<double>(events.memories().size()) *
           (static_cast<double>(tree.size()) + static_cast<double>(events.options().largest_blocks)) * named;
  return total;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
