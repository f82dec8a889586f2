#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// @file
/// The table of checkpoints: what was live at each across all memory spaces, and its largest blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// The largest blocks across all spaces, largest first.
[[nodiscard, gnu::cold]] inline vector<const live_block*> largest_blocks_of(const checkpoint& point, std::size_t most) {
  vector<const live_block*> blocks;
  for (const checkpoint_usage& usage : point.spaces) {
    for (const live_block& block : usage.largest_blocks) blocks.push_back(&block);
  }
  vector<const live_block*> largest;
  for (const std::size_t number : row_order(
           blocks.size(), [&](std::size_t left, std::size_t right) { return blocks[left]->bytes > blocks[right]->bytes; })) {
    if (largest.size() < most) largest.push_back(blocks[number]);
  }
  return largest;
}

/// The row of one checkpoint, and a row for each further block; those leave the first cells empty.
[[gnu::cold]] inline void add_checkpoint(marked_text& rows, const checkpoint& point, std::size_t blocks) {
  if (point.name.empty()) {
    rows.add("(periodic)").next_cell();
  } else {
    rows.add_name(point.name).next_cell();
  }
  rows.add_time(point.time_ns).next_cell().add_bytes(point.live_bytes).next_cell().add_count(point.live_blocks);
  const vector<const live_block*> largest = largest_blocks_of(point, blocks);
  for (const live_block* const block : largest) {
    if (block != largest.front()) rows.next_cell().next_cell().next_cell();
    add_block(rows.next_cell().add_bytes(block->bytes).next_cell(), *block);
    add_owner(rows.next_cell(), block->operation).end_line();
  }
  if (largest.empty()) rows.end_line();
}

/// The index of the checkpoint in row `row` if `rows` of `count` fit: the first, the last, and others spread evenly.
[[nodiscard, gnu::cold]] inline std::size_t spread_evenly(std::size_t row, std::size_t rows, std::size_t count) {
  return rows < 2 ? count - 1 : row * (count - 1) / (rows - 1);
}

/// A row for each checkpoint that fits, with at least one of its largest blocks.
[[nodiscard, gnu::cold]] inline summary_section checkpoint_section(const profile& source, const text_options& options) {
  summary_section section;
  section.is_wide = true;
  if (source.checkpoints.empty()) return section;
  section.table.has_titles = true;
  section.table.set_columns("Checkpoint\tTime\tLive\tBlocks\tLargest\tBlock\tOperation", "lrrrrll");
  marked_text& rows = section.table.rows;
  const std::size_t kept = source.checkpoints.size();
  const std::size_t shown = std::min(options.checkpoints, kept);
  for (std::size_t row = 0; row < shown; ++row) {
    add_checkpoint(rows, source.checkpoints[spread_evenly(row, shown, kept)], std::max<std::size_t>(options.largest_blocks, 1));
  }
  const auto left_out = static_cast<std::int64_t>(kept - shown);
  const std::int64_t lost = std::max(source.checkpoint_count, static_cast<std::int64_t>(kept)) - static_cast<std::int64_t>(kept);
  if (left_out != 0) rows.add_count(left_out, "further checkpoint", "further checkpoints");
  if (left_out != 0 && lost != 0) rows.add(", and ").add_count(lost).add(" not kept in the profile");
  if (left_out == 0 && lost != 0) rows.add_count(lost, "checkpoint", "checkpoints").add(" not kept in the profile");
  if (left_out != 0 || lost != 0) rows.end_line();
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
