#pragma once

#include <memprof/report/text/text_format.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Numbers for people: three significant digits in a suitable unit, so that no column is wider than nine characters.

namespace memprof::inline MEMPROF_ABI::detail {

/// Three significant digits of a number from 0 up to 999.5: "17.9", "4.88", "0.977".
[[nodiscard, gnu::cold]] inline std::string three_digits(double value) {
  // The bounds are where rounding would add a digit.
  const int decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return decimal(value, value == 0 ? 0 : decimals);
}

/// "512 B", "4.88 KiB", "17.9 MiB", "0.977 GiB", "-1.50 GiB". Less than 1 KiB is exact; more is rounded to three digits.
[[nodiscard, gnu::cold]] inline std::string short_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 0) {
    const std::string text = short_bytes(-bytes);
    return text == "0 B" ? text : "-" + text;
  }
  if (bytes < 1023.5) return decimal(bytes, 0) + " B";
  double value = bytes / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + std::string{units[unit]};
}

[[nodiscard, gnu::cold]] inline std::string short_bytes(std::int64_t bytes) { return short_bytes(static_cast<double>(bytes)); }

/// The same with a sign unless it is zero: "+4.88 KiB", "-512 B", "0 B".
[[nodiscard, gnu::cold]] inline std::string signed_short_bytes(double bytes) {
  const std::string text = short_bytes(bytes);
  return bytes < 0 || text == "0 B" ? text : "+" + text;
}

[[nodiscard, gnu::cold]] inline std::string signed_short_bytes(std::int64_t bytes) {
  return signed_short_bytes(static_cast<double>(bytes));
}

/// Bytes per step that something grows by. A rare leak has less than one.
[[nodiscard, gnu::cold]] inline std::string growth_rate(double per_step) {
  return per_step < 1 ? three_digits(per_step) + " B" : short_bytes(per_step);
}

/// "18,513,664".
[[nodiscard, gnu::cold]] inline std::string grouped(std::int64_t count) { return with_thousands(std::to_string(count)); }

/// "1 free", "231,113 events".
[[nodiscard, gnu::cold]] inline std::string grouped(std::int64_t count, std::string_view singular, std::string_view plural) {
  return grouped(count) + ' ' + std::string{count == 1 ? singular : plural};
}

/// "18,513,664 B".
[[nodiscard, gnu::cold]] inline std::string exact_bytes(std::int64_t bytes) { return grouped(bytes) + " B"; }

/// "17.7 MiB (18,513,664 B)"; the parenthesis only if the short form is rounded.
[[nodiscard, gnu::cold]] inline std::string short_and_exact_bytes(std::int64_t bytes) {
  const std::string text = short_bytes(bytes);
  return bytes < 1024 && bytes > -1024 ? text : text + " (" + exact_bytes(bytes) + ")";
}

/// "850 ns", "17.9 ms", "4.21 s"; from one minute on, "2 min 05 s", "3 h 12 min", "2 d 04 h".
[[nodiscard, gnu::cold]] inline std::string short_time(std::int64_t time_ns) {
  constexpr std::array<std::string_view, 3> units{"us", "ms", "s"};
  if (time_ns < 0) return "-" + short_time(time_ns == INT64_MIN ? INT64_MAX : -time_ns);
  if (time_ns < 1000) return std::to_string(time_ns) + " ns";
  constexpr std::int64_t ns_per_second = 1'000'000'000;
  if (time_ns < 60 * ns_per_second - ns_per_second / 20) {  // 59.95 s would round to 60.0
    double value = static_cast<double>(time_ns) / 1000;
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < units.size()) {
      value /= 1000;
      ++unit;
    }
    return three_digits(value) + " " + std::string{units[unit]};
  }
  const auto two_parts = [](std::int64_t total, std::int64_t base, std::string_view large, std::string_view small) {
    const std::int64_t rest = total % base;
    return std::to_string(total / base) + " " + std::string{large} + (rest < 10 ? " 0" : " ") + std::to_string(rest) + " " +
           std::string{small};
  };
  const std::int64_t seconds = time_ns / ns_per_second + (time_ns % ns_per_second >= ns_per_second / 2 ? 1 : 0);
  if (seconds < 3600) return two_parts(seconds, 60, "min", "s");
  if (seconds < std::int64_t{24} * 3600) return two_parts(seconds / 60, 60, "h", "min");
  return two_parts(seconds / 3600, 24, "d", "h");
}

/// "81.1 %", "0.4 %", "100 %"; "< 0.1 %" for what would round to zero.
[[nodiscard, gnu::cold]] inline std::string short_percent(std::int64_t part, std::int64_t whole) {
  const double share = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (share > 0 && share < 0.05) return "< 0.1 %";
  return decimal(share, share > -99.95 && share < 99.95 ? 1 : 0) + " %";
}

/// "0x7f0000000000".
[[nodiscard, gnu::cold]] inline std::string address_text(std::uint64_t address) {
  std::array<char, 16> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), address, 16);
  return "0x" + std::string{digits.data(), written.ptr};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
