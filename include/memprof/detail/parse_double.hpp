#pragma once

#include <memprof/config.hpp>

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <version>

#if !defined(__cpp_lib_to_chars)
#include <clocale>
#include <cstdlib>
#include <string>

#include <locale.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// `std::from_chars` for a decimal number, which libc++ lacks before version 20.
[[nodiscard]] inline std::from_chars_result parse_double(std::string_view text, double& number) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(text.data(), text.data() + text.size(), number);
#else
  // `strtod` also accepts what `from_chars` does not: spaces, a plus sign, hexadecimal digits, and the locale's decimal point.
  static const ::locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string decimal{text.substr(0, text.find_first_not_of("-+.0123456789eE"))};
  const bool is_number = !decimal.empty() && decimal.front() != '+';
  char* end = nullptr;
  const double parsed = is_number ? ::strtod_l(decimal.c_str(), &end, c_locale) : 0;
  if (!is_number || end == decimal.c_str()) return {text.data(), std::errc::invalid_argument};
  const char* const rest = text.data() + (end - decimal.c_str());
  if (parsed > 1.7976931348623157e308 || parsed < -1.7976931348623157e308) return {rest, std::errc::result_out_of_range};
  number = parsed;
  return {rest, std::errc{}};
#endif
}

}  // namespace memprof::inline MEMPROF_ABI::detail
