#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The answers: how high was the peak, when, and who owned it.

namespace memprof::inline MEMPROF_ABI::detail {

/// "17.7 MiB (18,513,664 B) of cpu at 52.1 ms in BACKWARD_PASS, step 1 of 200, operation forward/block".
[[gnu::cold]] inline void peak_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  marked_text& line = section.lines;
  line.add_total(space.cumulative_peak, emphasis::strong).add(" of ").add_name(space.name, emphasis::strong);
  if (has_blocks_on_cores(space)) line.add(" across all cores");
  if (space.cumulative_peak != 0) add_place(line, topic, space.peak_time_ns, space.peak_segment, space.peak_operation);
  line.end_line();
}

[[nodiscard, gnu::cold]] inline bool has_categories(const vector<owned_bytes>& by_category) {
  return std::any_of(by_category.begin(), by_category.end(),
                     [](const owned_bytes& row) { return row.bytes != 0 && row.owner != to_string(category::other); });
}

/// "activation 15.3 MiB (86.7 %), parameter 628 KiB (3.5 %), others 20.0 KiB (0.1 %)"; nothing if no category was recorded.
[[gnu::cold]] inline void add_categories(marked_text& line, const vector<owned_bytes>& by_category, std::int64_t whole) {
  if (!has_categories(by_category)) return;
  constexpr std::size_t most = 4;
  constexpr std::size_t longest_name = 20;  // memprof's own names are shorter
  std::size_t shown = 0;
  std::int64_t others = 0;
  const char* separator = "";
  const auto add = [&](std::string_view name, std::int64_t bytes) {
    line.add(separator).add(shortened(on_one_line(name), longest_name)).add(" ");
    line.add_bytes(bytes).add(" (").add_share(bytes, whole).add(")");
    separator = ", ";
  };
  for (const owned_bytes& row : by_category) {
    if (shown < most && row.bytes >= whole / 100) {
      add(row.owner, row.bytes);
      ++shown;
    } else {
      others = add_saturating(others, row.bytes);
    }
  }
  if (others > 0) add("others", others);
  line.end_line();
}

/// The category of more than half of an owner's bytes, if that is certain: the row says so, all bytes of the set have it, or
/// blocks that are listed. Empty otherwise.
[[nodiscard, gnu::cold]] inline std::string_view category_of(const live_set& live, const owned_bytes& owner) {
  if (!owner.category.empty()) return owner.category;
  for (const owned_bytes& row : live.by_category) {
    if (row.bytes == live.bytes && row.owner != to_string(category::other)) return row.owner;
  }
  for (const live_block& candidate : live.largest_blocks) {
    if (candidate.operation != owner.owner || candidate.category == category::other) continue;
    std::int64_t bytes = 0;
    for (const live_block& block : live.largest_blocks) {
      if (block.operation == owner.owner && block.category == candidate.category) bytes = add_saturating(bytes, block.bytes);
    }
    if (bytes > owner.bytes / 2) return to_string(candidate.category);
  }
  return {};
}

/// Who owned the bytes at the peak: the first operations, and one row for all others, so that the rows add up.
[[gnu::cold]] inline void owner_section(summary_section& section, const answer_topic& topic) {
  const live_set& live = topic.space->live_at_peak;
  if (live.bytes == 0) return;
  add_categories(section.lines, live.by_category, live.bytes);
  section.table.set_columns("Bytes\tShare\tBlocks\tOperation\tCategory", "rrrll");
  const std::size_t shown = std::min({topic.options.owners, topic.limits.owners, live.by_operation.size()});
  marked_text& rows = section.table.rows;
  std::int64_t others_bytes = live.remaining_bytes;
  for (std::size_t index = 0; index < live.by_operation.size(); ++index) {
    const owned_bytes& row = live.by_operation[index];
    if (index >= shown) {
      others_bytes = add_saturating(others_bytes, row.bytes);
      continue;
    }
    rows.add_bytes(row.bytes).next_cell().add_share(row.bytes, live.bytes).next_cell();
    rows.add_count(row.blocks, "block", "blocks").next_cell();
    add_owner(rows, row.owner).next_cell().add_name(category_of(live, row)).end_line();
  }
  const std::int64_t others = static_cast<std::int64_t>(live.by_operation.size() - shown) + live.remaining_operations;
  if (others <= 0) return;
  rows.add_bytes(others_bytes).next_cell().add_share(others_bytes, live.bytes).next_cell().next_cell();
  rows.add_count(others, "further operation", "further operations").end_line();
}

/// What identifies a block: its annotation, or else its address.
[[gnu::cold]] inline marked_text& add_block(marked_text& line, const live_block& block) {
  std::string text = block.name;
  const std::string_view marks[] = {block.shape, block.dtype, block.requires_grad == requires_grad::yes ? "requires_grad" : ""};
  for (const std::string_view mark : marks) {
    if (!text.empty() && !mark.empty()) text += ' ';
    text += mark;
  }
  return line.add_name(text.empty() ? address_text(block.address) : text);
}

/// The largest blocks at the peak.
[[gnu::cold]] inline void block_section(summary_section& section, const answer_topic& topic) {
  const live_set& live = topic.space->live_at_peak;
  section.table.set_columns("Bytes\tShare\tBlock\tCategory\tOperation", "rrlll");
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < std::min(topic.options.largest_blocks, live.largest_blocks.size()); ++index) {
    const live_block& block = live.largest_blocks[index];
    rows.add_bytes(block.bytes).next_cell().add_share(block.bytes, live.bytes).next_cell();
    add_block(rows, block).next_cell();
    if (block.category != category::other) rows.add(to_string(block.category));
    add_owner(rows.next_cell(), block.operation).end_line();
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
