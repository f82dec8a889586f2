#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/profile/ledger_names.hpp>
#include <memprof/profile/live_sets.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// What was live at each of the kept checkpoints.
template <class Checkpoints>
[[nodiscard, gnu::cold]] vector<checkpoint> build_checkpoints(const Checkpoints& kept, const ledger_names& names,
                                                              const vector<std::string>& paths) {
  vector<checkpoint> result(kept.marks().size());
  for (std::size_t index = 0; index < result.size(); ++index) {
    const checkpoint_mark& mark = kept.marks()[index];
    checkpoint& point = result[index];
    point.name = names.labels.text(mark.name);
    point.number = static_cast<std::int64_t>(mark.number);
    point.time_ns = std::max(names.time.to_ns(mark.stamp), std::int64_t{0});
    point.live_bytes = mark.bytes;
    point.live_blocks = mark.blocks;
    point.spaces = vector<checkpoint_usage>(mark.row_count);
    for (std::size_t row = 0; row < mark.row_count; ++row) {
      const checkpoint_row& held = kept.rows(mark)[row];
      checkpoint_usage& usage = point.spaces[row];
      const label space = names.space_names[held.space];
      usage.space = space == other_names ? other_spaces_name : names.labels.text(space);
      usage.live_bytes = held.bytes;
      usage.live_blocks = held.blocks;
      vector<block> largest(kept.largest_blocks(held), kept.largest_blocks(held) + held.block_count);
      sort_rows(largest.data(), largest.size(), is_larger);
      usage.largest_blocks = vector<live_block>(largest.size());
      for (std::size_t each = 0; each < largest.size(); ++each)
        usage.largest_blocks[each] = describe_block(largest[each], paths, names.labels);
    }
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
