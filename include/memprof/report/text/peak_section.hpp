#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The answers: how high was the peak, when, and who owned it.

namespace memprof::inline MEMPROF_ABI::detail {

/// "17.7 MiB (18,513,664 B) of cpu at 52.1 ms in BACKWARD_PASS, step 1 of 200, operation forward/block".
[[nodiscard, gnu::cold]] page_section peak_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Peak";
  page_line line;
  line.add(short_and_exact_bytes(space.cumulative_peak), emphasis::strong).add(" of ").add_name(space.name, emphasis::strong);
  if (has_blocks_on_cores(space)) line.add(" across all cores");
  if (space.cumulative_peak != 0) {
    add_place(line, source, steps, space.peak_time_ns, space.peak_segment, space.peak_operation);
  }
  section.lines.push_back(line);
  return section;
}

[[nodiscard, gnu::cold]] inline bool has_categories(const std::vector<owned_bytes>& by_category) {
  return std::any_of(by_category.begin(), by_category.end(),
                     [](const owned_bytes& row) { return row.bytes != 0 && row.owner != to_string(category::other); });
}

/// "activation 15.3 MiB (86.7 %), parameter 628 KiB (3.5 %), others 20.0 KiB (0.1 %)".
[[nodiscard, gnu::cold]] page_line category_line(const auto& by_category, std::int64_t whole) {
  constexpr std::size_t most = 4;
  constexpr std::size_t longest_name = 20;  // memprof's own names are shorter
  page_line line;
  std::size_t shown = 0;
  std::int64_t others = 0;
  const auto add = [&](std::string_view name, std::int64_t bytes) {
    if (!line.empty()) line.add(", ");
    line.add(shortened(on_one_line(name), longest_name) + " " + short_bytes(bytes) + " (" + short_percent(bytes, whole) + ")");
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
  return line;
}

/// The category of more than half of an owner's bytes, if that is certain: all bytes of the set have it, or blocks that are
/// listed. Empty otherwise.
[[nodiscard, gnu::cold]] std::string_view category_of(const auto& live, const owned_bytes& owner) {
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

/// The columns of a table of owners; only other formats show the titles.
[[nodiscard, gnu::cold]] inline page_table owner_table() {
  page_table table;
  table.columns = {{"Bytes", true}, {"Share", true}, {"Blocks", true}, {"Operation", false}, {"Category", false}};
  return table;
}

[[nodiscard, gnu::cold]] inline page_line owner_name(std::string_view path) {
  return path.empty() ? page_line{"outside every operation"} : page_line{}.add_name(path);
}

/// The first `most` operations, and one row for all others, so that the rows add up.
[[nodiscard, gnu::cold]] page_table owner_rows(const auto& live, std::size_t most) {
  page_table table = owner_table();
  const std::size_t shown = std::min(most, live.by_operation.size());
  std::int64_t others_bytes = live.remaining_bytes;
  for (std::size_t index = 0; index < live.by_operation.size(); ++index) {
    const owned_bytes& row = live.by_operation[index];
    if (index >= shown) {
      others_bytes = add_saturating(others_bytes, row.bytes);
      continue;
    }
    table.rows.push_back({short_bytes(row.bytes), short_percent(row.bytes, live.bytes), grouped(row.blocks, "block", "blocks"),
                          owner_name(row.owner), page_line{}.add_name(category_of(live, row))});
  }
  const std::int64_t others = static_cast<std::int64_t>(live.by_operation.size() - shown) + live.remaining_operations;
  if (others > 0) {
    table.rows.push_back({short_bytes(others_bytes), short_percent(others_bytes, live.bytes), "",
                          grouped(others, "further operation", "further operations")});
  }
  return table;
}

/// Who owned the bytes at the peak.
[[nodiscard, gnu::cold]] page_section owner_section(const auto& live, std::size_t most) {
  page_section section;
  section.heading = "Owners";
  if (live.bytes == 0) return section;
  if (has_categories(live.by_category)) section.lines.push_back(category_line(live.by_category, live.bytes));
  section.table = owner_rows(live, most);
  return section;
}

/// What identifies a block: its annotation, or else its address.
[[nodiscard, gnu::cold]] page_line block_text(const auto& block) {
  std::string text = block.name;
  for (const std::string* const part : {&block.shape, &block.dtype}) {
    if (!part->empty()) text += (text.empty() ? "" : " ") + *part;
  }
  if (block.requires_grad == requires_grad::yes) text += text.empty() ? "requires_grad" : " requires_grad";
  if (text.empty()) text = address_text(block.address);
  return page_line{}.add_name(text);
}

/// The largest blocks at the peak.
[[nodiscard, gnu::cold]] page_section block_section(const auto& live, std::size_t most) {
  page_section section;
  section.heading = "Blocks";
  section.table.columns = {{"Bytes", true}, {"Share", true}, {"Block", false}, {"Category", false}, {"Operation", false}};
  for (std::size_t index = 0; index < std::min(most, live.largest_blocks.size()); ++index) {
    const live_block& block = live.largest_blocks[index];
    section.table.rows.push_back({short_bytes(block.bytes), short_percent(block.bytes, live.bytes), block_text(block),
                                  std::string{block.category == category::other ? "" : to_string(block.category)},
                                  owner_name(block.operation)});
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
