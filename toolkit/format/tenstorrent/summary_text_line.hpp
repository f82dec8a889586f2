#pragma once

#include <memprof/detail/byte_size.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/log_line.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Parsers of the parts of `to_text` lines.

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes in "17.9 MiB", "+4.88 KiB", "-512 B"; nothing if the text is anything else.
[[nodiscard]] inline std::optional<std::int64_t> short_bytes_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front()) || !text.ends_with('B')) return std::nullopt;
  const std::optional<std::int64_t> bytes = scaled_bytes(text);
  if (!bytes) return std::nullopt;
  return is_negative ? -*bytes : *bytes;
}

/// The bytes in "18,513,664 B", or in a short form.
[[nodiscard]] inline std::optional<std::int64_t> exact_bytes_of(std::string_view text) {
  std::string digits{text};
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return short_bytes_of(digits);
}

/// The bytes at the start of "17.7 MiB (18,513,664 B) of cpu": the exact ones if they follow.
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

/// The fields separated by two or more spaces.
[[nodiscard]] inline std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = line.find("  ");
    fields.push_back(line.substr(0, end));
    line = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  }
  return fields;
}

/// A row of the table of segments.
struct segment_row {
  std::string name;
  std::int64_t count = 0;
  value_summary peak;
  std::optional<value_summary> change;  ///< nothing: it is in the next row
};

/// The values of a number that was the same each time.
[[nodiscard]] inline value_summary constant_values(std::int64_t value, std::int64_t count) {
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(value, count, &sum)) sum = value < 0 ? INT64_MIN : INT64_MAX;
  return {value, value, value, value, sum, -1, -1};
}

/// First, last, least, greatest and mean: the last five fields of a row.
[[nodiscard]] inline std::optional<value_summary> trailing_five_values(const std::vector<std::string_view>& fields,
                                                                       std::int64_t count) {
  if (fields.size() < 5) return std::nullopt;
  std::array<std::int64_t, 5> values{};
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::optional<std::int64_t> bytes = short_bytes_of(fields[fields.size() - values.size() + index]);
    if (!bytes) return std::nullopt;
    values[index] = *bytes;
  }
  return value_summary{values[0], values[1], values[2], values[3], constant_values(values[4], count).sum, -1, -1};
}

/// The bytes of a change in "change +15.7 MiB, each time".
[[nodiscard]] inline std::optional<std::int64_t> change_after_word(std::string_view text) {
  constexpr std::string_view word = "change ";
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  return short_bytes_of(text.substr(0, text.find(',')));
}

/// The row of a name, or nothing if the line is not one. It ends with the numbers; the name is whatever precedes them:
/// "FORWARD_PASS  20  15.7 MiB  15.7 MiB  15.6 MiB  15.7 MiB  15.7 MiB", "FORWARD_PASS  20  15.7 MiB  change +15.7 MiB, each
/// time", or in a table in which no name varies "FORWARD_PASS  20  15.7 MiB  +15.7 MiB  each time".
[[nodiscard]] inline std::optional<segment_row> segment_row_of(std::string_view line) {
  std::vector<std::string_view> fields = fields_of(line);
  if (!fields.empty() && fields.back().starts_with("each time")) fields.pop_back();
  const auto count_before = [&](std::size_t numbers) -> std::optional<std::int64_t> {
    return fields.size() < numbers + 2 ? std::nullopt : count_at(fields[fields.size() - numbers - 1]);
  };
  std::size_t numbers = 5;
  segment_row row;
  if (const auto count = count_before(5); count && trailing_five_values(fields, *count)) {
    row.count = *count;
    row.peak = *trailing_five_values(fields, *count);
  } else {
    numbers = 2;
    const auto count_of_constant = count_before(2);
    if (!count_of_constant) return std::nullopt;
    const std::optional<std::int64_t> peak = short_bytes_of(fields[fields.size() - 2]);
    std::optional<std::int64_t> change = change_after_word(fields.back());
    if (!change) change = short_bytes_of(fields.back());
    if (!peak || !change) return std::nullopt;
    row.count = *count_of_constant;
    row.peak = constant_values(*peak, row.count);
    row.change = constant_values(*change, row.count);
  }
  const std::string_view count_field = fields[fields.size() - numbers - 1];
  row.name = trimmed(line.substr(0, static_cast<std::size_t>(count_field.data() - line.data())));
  return row;
}

/// The values in "  change  +15.7 MiB  +15.7 MiB ...".
[[nodiscard]] inline std::optional<value_summary> change_row_of(std::string_view line, std::int64_t count) {
  const std::vector<std::string_view> fields = fields_of(line);
  return fields.size() == 6 && fields[0] == "change" && line.starts_with("  ") ? trailing_five_values(fields, count)
                                                                               : std::nullopt;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
