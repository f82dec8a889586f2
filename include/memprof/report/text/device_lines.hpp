#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/segment_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

/// @file
/// The parts of the text report that answer: which stream and pool held the memory, and what did the device have no room for.

namespace memprof::detail {

/// "stream default, private pool 0:1".
[[nodiscard]] std::string stream_text(const auto& row) {
  std::string text = row.stream.starts_with('(') ? on_one_line(row.stream) : "stream " + on_one_line(row.stream);
  if (row.pool == "unknown") return text + ", pool unknown";
  return row.pool.empty() ? text : text + ", private pool " + on_one_line(row.pool);
}

/// One stream with the allocator's own pool holds all that is said of the space anyway.
[[nodiscard]] bool are_worth_a_table(const auto& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first streams of the space, which are those with the most reserved bytes.
void append_streams(auto& text, const auto& space, const text_options& options) {
  if (!are_worth_a_table(space.streams)) return;
  constexpr std::size_t width = 15;
  text += "  By stream and pool:\n   Reserved peak  Reserved now      Live peak       Live now  Allocations\n";
  const std::size_t shown = std::min(options.streams, space.streams.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const stream_usage& row = space.streams[index];
    text += right_aligned(megabytes(row.reserved_peak), width + 1) + right_aligned(megabytes(row.reserved_current), width - 1) +
            right_aligned(megabytes(row.cumulative_peak), width) + right_aligned(megabytes(row.cumulative_current), width) +
            right_aligned(std::to_string(row.allocation_count), width - 2) + "  " + stream_text(row) + '\n';
  }
  if (shown < space.streams.size()) text += "    (" + std::to_string(space.streams.size() - shown) + " more)\n";
}

/// Each allocation for which the device had no memory, up to the first ones.
void append_out_of_memory(auto& text, const auto& source, const auto& space, const text_options& options) {
  const std::size_t shown = std::min(options.out_of_memory, space.out_of_memory.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const out_of_memory_failure& failed = space.out_of_memory[index];
    text += on_one_line(space.name) + " WAS OUT OF MEMORY: " + megabytes(failed.requested) + " were asked for, " +
            after_begin(failed.time_ns) + ",\n  " + segment_text(source, failed.segment) + operation_text(failed.operation) +
            ";\n  " + megabytes(failed.device_free) + " were free on the device, " + megabytes(failed.reserved_bytes) +
            " reserved by its allocator, " + megabytes(failed.live_bytes) + " of them live\n";
  }
  const auto left_out = static_cast<std::int64_t>(space.out_of_memory.size() - shown) + space.further_out_of_memory.count;
  if (left_out > 0) text += "  and " + counted(left_out, "further time", "further times") + '\n';
}

}  // namespace memprof::detail
