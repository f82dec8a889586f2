#pragma once

#include <memprof/report/text/text_format.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// How the text report says when and where something happened.

namespace memprof::detail {

[[nodiscard]] inline std::string operation_text(std::string_view path) {
  return path.empty() ? std::string{"outside every operation"} : "in operation " + on_one_line(path);
}

[[nodiscard]] inline std::string after_begin(std::int64_t time_ns) {
  constexpr double ns_per_second = 1e9;
  return decimal(static_cast<double>(time_ns) / ns_per_second, 3) + " s after the capture began";
}

/// "in segment FORWARD_PASS (2 of 2), " of all segments of the capture; empty if the index leads to none.
[[nodiscard]] std::string segment_text(const auto& source, std::int64_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= source.segments.size()) return {};
  const auto& segment = source.segments[static_cast<std::size_t>(index)];
  const bool is_numbered = segment.number >= 0 && source.segment_count > segment.number;
  const std::int64_t number = is_numbered ? segment.number : index;
  const std::int64_t count = is_numbered ? source.segment_count : static_cast<std::int64_t>(source.segments.size());
  return "in segment " + on_one_line(segment.name) + " (" + std::to_string(number + 1) + " of " + std::to_string(count) + "), ";
}

}  // namespace memprof::detail
