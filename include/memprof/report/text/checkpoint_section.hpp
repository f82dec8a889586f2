#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The table of checkpoints: what was live at each across all memory spaces, and its largest blocks.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard, gnu::cold]] inline page_line checkpoint_title(const checkpoint& point) {
  return point.name.empty() ? page_line{"(periodic)"} : page_line{}.add_name(point.name);
}

/// A block of a checkpoint with its space.
struct block_at_checkpoint {
  const live_block* block;
  const checkpoint_usage* usage;
  std::size_t place;  ///< index among all blocks of the checkpoint
};

/// The largest blocks across all spaces, largest first.
[[nodiscard, gnu::cold]] std::vector<block_at_checkpoint> largest_blocks_of(const auto& point, std::size_t most) {
  std::vector<block_at_checkpoint> blocks;
  for (const checkpoint_usage& usage : point.spaces) {
    for (const live_block& block : usage.largest_blocks) blocks.push_back({&block, &usage, blocks.size()});
  }
  sort_rows(blocks.data(), blocks.size(), [](const block_at_checkpoint& left, const block_at_checkpoint& right) {
    return left.block->bytes != right.block->bytes ? left.block->bytes > right.block->bytes : left.place < right.place;
  });
  if (blocks.size() > most) blocks.resize(most);
  return blocks;
}

/// The indices of the checkpoints to show if at most `most` of `count` fit: the first, the last, and others spread evenly.
[[nodiscard, gnu::cold]] inline std::vector<std::size_t> spread_evenly(std::size_t count, std::size_t most) {
  std::vector<std::size_t> shown;
  if (count == 0 || most == 0) return shown;
  if (most == 1) return {count - 1};
  const std::size_t rows = std::min(count, most);
  for (std::size_t row = 0; row < rows; ++row) shown.push_back(rows == 1 ? 0 : row * (count - 1) / (rows - 1));
  return shown;
}

/// A row for each of at most `most` checkpoints, with up to `blocks` of its largest blocks, at least one.
[[nodiscard, gnu::cold]] page_section checkpoint_section(const auto& source, std::size_t most, std::size_t blocks) {
  page_section section;
  section.is_wide = true;
  if (source.checkpoints.empty()) return section;
  section.table.has_titles = true;
  section.table.columns = {{"Checkpoint", false}, {"Time", true},   {"Live", true},      {"Blocks", true},
                           {"Largest", true},     {"Block", false}, {"Operation", false}};
  const std::vector<std::size_t> shown = spread_evenly(source.checkpoints.size(), most);
  for (const std::size_t index : shown) {
    const checkpoint& point = source.checkpoints[index];
    std::vector<page_line> row{checkpoint_title(point), short_time(point.time_ns), short_bytes(point.live_bytes),
                               grouped(point.live_blocks)};
    for (const block_at_checkpoint& held : largest_blocks_of(point, std::max<std::size_t>(blocks, 1))) {
      row.resize(4);  // rows of further blocks leave the first four cells empty
      row.emplace_back(short_bytes(held.block->bytes));
      row.push_back(block_text(*held.block));
      row.push_back(owner_name(held.block->operation));
      section.table.rows.push_back(std::exchange(row, {}));
    }
    if (!row.empty()) section.table.rows.push_back(std::move(row));
  }
  const auto kept = static_cast<std::int64_t>(source.checkpoints.size());
  const std::int64_t all = std::max(source.checkpoint_count, kept);
  const auto rows = static_cast<std::int64_t>(shown.size());
  if (rows < kept) {
    section.table.rows.push_back({grouped(kept - rows, "further checkpoint", "further checkpoints") +
                                  (kept < all ? ", and " + grouped(all - kept) + " not kept in the profile" : "")});
  } else if (kept < all) {
    section.table.rows.push_back({grouped(all - kept, "checkpoint", "checkpoints") + " not kept in the profile"});
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
