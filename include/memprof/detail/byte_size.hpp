#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/parse_double.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

struct byte_unit {
  std::string_view name;
  double bytes;
};

/// SI and IEC 80000-13 units. "12G" is left out, because it is used for both.
inline constexpr std::array<byte_unit, 14> byte_units{{{"", 1},
                                                       {"B", 1},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"PB", 1e15},
                                                       {"EB", 1e18},
                                                       {"KiB", 0x1p10},
                                                       {"MiB", 0x1p20},
                                                       {"GiB", 0x1p30},
                                                       {"TiB", 0x1p40},
                                                       {"PiB", 0x1p50},
                                                       {"EiB", 0x1p60}}};

[[nodiscard]] inline bool equal_but_for_case(std::string_view left, std::string_view right) noexcept {
  const auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char one, char other) { return lower(one) == lower(other); });
}

/// Empty unless all of `text` is a whole number of bytes from 0 to 2^63-1.
[[nodiscard]] inline std::optional<std::int64_t> whole_bytes(std::string_view text) noexcept {
  std::int64_t bytes = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (fault != std::errc{} || end != text.data() + text.size() || bytes < 0) return std::nullopt;
  return bytes;
}

/// The same for a number with a fraction, an exponent or a unit; rounded to the nearest byte.
[[nodiscard]] inline std::optional<std::int64_t> scaled_bytes(std::string_view text) noexcept {
  double number = 0;
  const auto [end, fault] = parse_double(text, number);
  if (fault != std::errc{}) return std::nullopt;
  std::string_view unit_name = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit_name.starts_with(' ')) unit_name.remove_prefix(1);
  const auto unit = std::find_if(byte_units.begin(), byte_units.end(),
                                 [&](const byte_unit& known) { return equal_but_for_case(known.name, unit_name); });
  if (unit == byte_units.end()) return std::nullopt;
  const double bytes = std::round(number * unit->bytes);
  if (!(bytes >= 0) || bytes >= 0x1p63) return std::nullopt;  // written this way to reject not-a-number too
  return static_cast<std::int64_t>(bytes);
}

}  // namespace detail

/// Parses a size written by a person: "12884901888", "1.5e9", "12GB" (12 * 10^9), "12GiB" (12 * 2^30). Units are B, KB to EB and
/// KiB to EiB, in upper or lower case; a fraction is rounded to the nearest byte. Raises an error that shows the correct
/// notation.
[[nodiscard]] inline std::int64_t parse_byte_size(std::string_view text) {
  if (const auto bytes = detail::whole_bytes(text)) return *bytes;
  if (const auto bytes = detail::scaled_bytes(text)) return *bytes;
  detail::raise("'" + std::string{text} +
                "' is not a valid size: write bytes from 0 to 2^63-1, such as 1.5e9, 12GB (12 * 10^9) or 12GiB (12 * 2^30)");
}

}  // namespace memprof::inline MEMPROF_ABI
