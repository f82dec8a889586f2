#pragma once

#include <memprof/detail/byte_size.hpp>
#include <memprof/format/log_line.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The parts of the lines of `to_text`, as its reader takes them.

namespace memprof::detail {

/// The bytes of "17.9 MiB", "+4.88 KiB", "-512 B"; nothing unless the whole text is that.
[[nodiscard]] inline std::optional<std::int64_t> short_bytes_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front()) || !text.ends_with('B')) return std::nullopt;
  const std::optional<std::int64_t> bytes = scaled_bytes(text);
  if (!bytes) return std::nullopt;
  return is_negative ? -*bytes : *bytes;
}

/// The bytes of "18,513,664 B", or of a short form.
[[nodiscard]] inline std::optional<std::int64_t> exact_bytes_of(std::string_view text) {
  std::string digits{text};
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return short_bytes_of(digits);
}

/// The bytes at the beginning of "17.7 MiB (18,513,664 B) of cpu": the exact ones, where they follow.
[[nodiscard]] inline std::optional<std::int64_t> leading_bytes(std::string_view text) {
  const std::size_t number = text.find(' ');
  if (number == std::string_view::npos) return std::nullopt;
  const std::size_t unit = text.find_first_of(" ,;", number + 1);
  const std::string_view rest = unit == std::string_view::npos ? std::string_view{} : text.substr(unit);
  if (rest.starts_with(" (")) {
    if (const auto exact = exact_bytes_of(rest.substr(2, rest.find(')') - 2))) return exact;
  }
  return short_bytes_of(text.substr(0, unit));
}

/// What stands between runs of two spaces or more.
[[nodiscard]] inline std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = line.find("  ");
    fields.push_back(line.substr(0, end));
    line = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  }
  return fields;
}

/// The categories in "activation 15.3 MiB (86.7 %), parameter 625 KiB (3.5 %), others 20.0 KiB (0.1 %)"; what cannot be read is
/// left out.
[[nodiscard]] inline std::vector<owned_bytes> categories_of(std::string_view text) {
  std::vector<owned_bytes> categories;
  while (!text.empty()) {
    const std::size_t end = text.find("), ");
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 3);
    const std::size_t share = part.rfind(" (");
    const std::size_t unit = share == std::string_view::npos || share == 0 ? share : part.rfind(' ', share - 1);
    const std::size_t number = unit == std::string_view::npos || unit == 0 ? unit : part.rfind(' ', unit - 1);
    if (share == std::string_view::npos || unit == std::string_view::npos || number == std::string_view::npos) continue;
    const std::optional<std::int64_t> bytes = short_bytes_of(part.substr(number + 1, share - number - 1));
    if (!bytes) continue;
    const std::string_view name = trimmed(part.substr(0, number));
    categories.push_back({std::string{name == "others" ? to_string(category::other) : name}, *bytes, 0});
  }
  return categories;
}

/// A row of the table of segments.
struct segment_row {
  std::string name;
  std::int64_t count = 0;
  std::int64_t peak = 0;
  std::optional<std::int64_t> change;  ///< nothing: the next row has it
};

/// The bytes of a change in "change +15.7 MiB, each time".
[[nodiscard]] inline std::optional<std::int64_t> worded_change(std::string_view text) {
  constexpr std::string_view word = "change ";
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  return short_bytes_of(text.substr(0, text.find(',')));
}

/// The row of a name, or nothing if the line is none. The first values stand for the name.
[[nodiscard]] inline std::optional<segment_row> segment_row_of(std::string_view line) {
  std::vector<std::string_view> fields = fields_of(line);
  if (!fields.empty() && fields.back().starts_with("each time")) fields.pop_back();
  std::size_t numbers = 2;  // peak and change
  segment_row row;
  if (fields.size() < 4) return std::nullopt;
  if (const auto change = worded_change(fields.back())) {
    row.change = change;
  } else if (fields.size() >= 7 && short_bytes_of(fields[fields.size() - 3])) {
    numbers = 5;
  } else {
    row.change = short_bytes_of(fields.back());
    if (!row.change) return std::nullopt;
  }
  const std::size_t first = fields.size() - numbers;
  const std::optional<std::int64_t> peak = short_bytes_of(fields[first]);
  const std::optional<std::int64_t> count = count_at(fields[first - 1]);
  if (!peak || !count) return std::nullopt;
  row.peak = *peak;
  row.count = *count;
  const std::size_t end = static_cast<std::size_t>(fields[first - 1].data() - line.data());
  row.name = trimmed(line.substr(0, end));
  return row;
}

/// The first value in "  change  +15.7 MiB  +15.7 MiB ...".
[[nodiscard]] inline std::optional<std::int64_t> change_row_of(std::string_view line) {
  const std::vector<std::string_view> fields = fields_of(line);
  return fields.size() == 6 && fields[0] == "change" && line.starts_with("  ") ? short_bytes_of(fields[1]) : std::nullopt;
}

}  // namespace memprof::detail
