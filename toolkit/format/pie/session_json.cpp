#include <memprof/config.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pie/session_json.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The end of the array of integers, or of such arrays, that starts at `at`; `npos` if there is none.
std::size_t end_of_dimensions(std::string_view text, std::size_t at, int depth = 0) {
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

}  // namespace

std::string& json_object::key(std::string_view name) {
  if (!is_empty_) out_ += ", ";
  is_empty_ = false;
  append_json_string(out_, name);
  return out_ += ": ";
}

void json_object::number(std::string_view name, double value) {
  char digits[32];
  key(name).append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::string& json_array::element() {
  if (!is_empty_) out_ += ", ";
  is_empty_ = false;
  return out_;
}

std::string iso_time(std::int64_t unix_ns) {
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

void append_shape(std::string& out, std::string_view shape) {
  if (shape.empty()) {
    out += "null";
  } else if (end_of_dimensions(shape, 0) == shape.size()) {
    out += shape;
  } else {
    append_json_string(out, shape);
  }
}

void append_shapes(std::string& out, std::string_view shapes) {
  const std::string list = '[' + std::string{shapes} + ']';
  append_shape(out, end_of_dimensions(list, 0) == list.size() ? std::string_view{list} : shapes);
}

std::string torch_dtype(std::string_view dtype) {
  const bool is_plain = !dtype.empty() && dtype.find('.') == std::string_view::npos;
  return (is_plain ? "torch." : "") + std::string{dtype};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
