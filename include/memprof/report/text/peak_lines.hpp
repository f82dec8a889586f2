#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/core_lines.hpp>
#include <memprof/report/text/device_lines.hpp>
#include <memprof/report/text/reserved_lines.hpp>
#include <memprof/report/text/segment_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The part of the text report that answers: how much was it, when, and whose.

namespace memprof::detail {

/// One row of a table: bytes, their share of `whole`, and whose they are.
void append_share(auto& text, std::int64_t bytes, std::int64_t whole, const std::string& what) {
  constexpr std::size_t bytes_width = 15;
  constexpr std::size_t share_width = 6;
  const double share = whole == 0 ? 0.0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(whole);
  text +=
      right_aligned(megabytes(bytes), bytes_width) + "  " + right_aligned(decimal(share, 1), share_width) + " %  " + what + '\n';
}

/// The first `most` operations, and all others as one row, so that the rows add up.
void append_owners(auto& text, const auto& live, std::size_t most) {
  text += "  Largest owners at that moment:\n";
  const std::size_t shown = std::min(most, live.by_operation.size());
  std::int64_t others_bytes = live.remaining_bytes;
  for (std::size_t index = 0; index < live.by_operation.size(); ++index) {
    const owned_bytes& row = live.by_operation[index];
    if (index >= shown) {
      others_bytes += row.bytes;
      continue;
    }
    const std::string owner = row.owner.empty() ? operation_text({}) : on_one_line(row.owner);
    append_share(text, row.bytes, live.bytes, owner + " (" + counted(row.blocks, "block", "blocks") + ")");
  }
  const std::int64_t others = static_cast<std::int64_t>(live.by_operation.size() - shown) + live.remaining_operations;
  if (others > 0) append_share(text, others_bytes, live.bytes, counted(others, "further operation", "further operations"));
}

void append_categories(auto& text, const auto& live) {
  const bool none_set =
      live.by_category.empty() || (live.by_category.size() == 1 && live.by_category.front().owner == to_string(category::other));
  if (none_set) return;
  text += "  By category:\n";
  for (const owned_bytes& row : live.by_category) {
    append_share(text, row.bytes, live.bytes, on_one_line(row.owner) + " (" + counted(row.blocks, "block", "blocks") + ")");
  }
}

/// What is known of a block: its annotation, or else its address.
[[nodiscard]] std::string block_text(const auto& block) {
  std::string text = on_one_line(block.name);
  for (const std::string* const part : {&block.shape, &block.dtype}) {
    if (!part->empty()) text += (text.empty() ? "" : " ") + on_one_line(*part);
  }
  if (block.requires_grad == requires_grad::yes) text += text.empty() ? "requires_grad" : " requires_grad";
  if (text.empty()) {
    std::array<char, 16> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), block.address, 16);
    text = "0x" + std::string{digits.data(), written.ptr};
  }
  if (block.category != category::other) text += ", " + std::string{to_string(block.category)};
  return text + ", allocated " + operation_text(block.operation);
}

void append_blocks(auto& text, const auto& live, std::size_t most) {
  const std::size_t shown = std::min(most, live.largest_blocks.size());
  if (shown == 0) return;
  text += "  Largest blocks:\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const live_block& block = live.largest_blocks[index];
    append_share(text, block.bytes, live.bytes, block_text(block));
  }
}

/// When and where the greatest number of bytes was live in one space, and whose they were.
void append_peak(auto& text, const auto& source, const auto& space, const text_options& options) {
  text += "Peak of " + on_one_line(space.name) + (lies_on_cores(space) ? " on all cores together: " : ": ") +
          megabytes(space.cumulative_peak) + " (" + counted(space.cumulative_peak, "byte", "bytes") + ")";
  if (space.cumulative_peak == 0) {
    text += ", nothing was live\n";
    append_reserved(text, space);
    return append_streams(text, space, options);
  }
  text += ", " + after_begin(space.peak_time_ns) + ",\n  " + segment_text(source, space.peak_segment) +
          operation_text(space.peak_operation) + '\n';
  append_reserved(text, space);
  append_streams(text, space, options);
  append_owners(text, space.live_at_peak, options.owners);
  append_categories(text, space.live_at_peak);
  append_blocks(text, space.live_at_peak, options.largest_blocks);
  if (lies_on_cores(space)) append_core_ranges(text, space.cores, options.core_ranges);
}

}  // namespace memprof::detail
