#pragma once

#include <memprof/toolkit/format/json_text.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Values as pie's memory profiler writes them into session profiles: megabytes, times, shapes.

namespace memprof::inline MEMPROF_ABI::detail {

/// Appends a JSON object to a text, key by key.
class json_object {
 public:
  explicit json_object(std::string& out) : out_(out) { out_ += '{'; }
  json_object(const json_object&) = delete;
  json_object& operator=(const json_object&) = delete;
  ~json_object() { out_ += '}'; }

  /// Begins a value; the caller appends it.
  std::string& key(std::string_view name) {
    if (!is_empty_) out_ += ", ";
    is_empty_ = false;
    append_json_string(out_, name);
    return out_ += ": ";
  }
  void text(std::string_view name, std::string_view value) { append_json_string(key(name), value); }
  void null(std::string_view name) { key(name) += "null"; }
  void boolean(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  template <std::integral T>
  void number(std::string_view name, T value) {
    key(name) += std::to_string(value);
  }
  /// The shortest text that reads back as the same number.
  void number(std::string_view name, double value) {
    char digits[32];
    key(name).append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  /// MB of 2^20 bytes, as a number that is exact below 2^53 bytes.
  void megabytes(std::string_view name, std::int64_t bytes) { number(name, static_cast<double>(bytes) / (1 << 20)); }

 private:
  std::string& out_;
  bool is_empty_ = true;
};

/// Appends the elements of a JSON array, one after the other.
class json_array {
 public:
  explicit json_array(std::string& out) : out_(out) { out_ += '['; }
  json_array(const json_array&) = delete;
  json_array& operator=(const json_array&) = delete;
  ~json_array() { out_ += ']'; }

  std::string& element() {
    if (!is_empty_) out_ += ", ";
    is_empty_ = false;
    return out_;
  }

 private:
  std::string& out_;
  bool is_empty_ = true;
};

/// "2025-01-13T10:29:45.250000+00:00": the format of Python's `datetime.isoformat`, in UTC.
[[nodiscard]] inline std::string iso_time(std::int64_t unix_ns) {
  constexpr std::int64_t ns_per_day = 86'400'000'000'000;
  std::int64_t day = unix_ns / ns_per_day;
  std::int64_t of_day = unix_ns % ns_per_day;
  if (of_day < 0) {
    of_day += ns_per_day;
    --day;
  }
  // Days since 1970 as a date of the Gregorian calendar: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  const std::int64_t shifted = day + 719'468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const std::int64_t of_era = shifted - era * 146'097;
  const std::int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * of_year + 2) / 153;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  std::string text;
  const auto put = [&](std::int64_t value, std::size_t width, char before) {
    if (before != 0) text += before;
    const std::string digits = std::to_string(value);
    text.append(width - (digits.size() < width ? digits.size() : width), '0');
    text += digits;
  };
  put(year, 4, 0);
  put(month, 2, '-');
  put(of_year - (153 * month_from_march + 2) / 5 + 1, 2, '-');
  put(of_day / 3'600'000'000'000, 2, 'T');
  put(of_day / 60'000'000'000 % 60, 2, ':');
  put(of_day / 1'000'000'000 % 60, 2, ':');
  put(of_day / 1000 % 1'000'000, 6, '.');
  return text + "+00:00";
}

/// The end of the array of integers, or of such arrays, that starts at `at`; `npos` if there is none.
[[nodiscard]] inline std::size_t end_of_dimensions(std::string_view text, std::size_t at, int depth = 0) {
  constexpr int deepest = 16;
  const auto skip_spaces = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  if (at >= text.size() || text[at] != '[' || depth == deepest) return std::string_view::npos;
  ++at;
  skip_spaces();
  if (at < text.size() && text[at] == ']') return at + 1;
  for (;;) {
    skip_spaces();
    if (at < text.size() && text[at] == '[') {
      at = end_of_dimensions(text, at, depth + 1);
      if (at == std::string_view::npos) return at;
    } else {
      const std::size_t begin = at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
      const bool has_leading_zero = at - begin > 1 && text[begin] == '0';
      if (at == begin || has_leading_zero) return std::string_view::npos;
    }
    skip_spaces();
    if (at >= text.size()) return std::string_view::npos;
    const char next = text[at++];
    if (next == ']') return at;
    if (next != ',') return std::string_view::npos;
  }
}

/// Appends "[65, 128]" as an array of numbers, an empty text as null, and anything else as a string.
inline void append_shape(std::string& out, std::string_view shape) {
  if (shape.empty()) {
    out += "null";
  } else if (end_of_dimensions(shape, 0) == shape.size()) {
    out += shape;
  } else {
    append_json_string(out, shape);
  }
}

/// Appends "[8], [4, 2]" as an array of shapes; otherwise as `append_shape`.
inline void append_shapes(std::string& out, std::string_view shapes) {
  const std::string list = '[' + std::string{shapes} + ']';
  append_shape(out, end_of_dimensions(list, 0) == list.size() ? std::string_view{list} : shapes);
}

/// "float32" as "torch.float32"; qualified names are unchanged.
[[nodiscard]] inline std::string torch_dtype(std::string_view dtype) {
  const bool is_plain = !dtype.empty() && dtype.find('.') == std::string_view::npos;
  return (is_plain ? "torch." : "") + std::string{dtype};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
