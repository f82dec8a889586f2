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

/// The unit of that name: as in the table, "kB", or wholly in lower or in upper case. Null for others such as "Mb", which is of
/// bits.
[[nodiscard]] inline const byte_unit* unit_of(std::string_view name) noexcept {
  const auto has = [&](char first, char last) {
    return std::any_of(name.begin(), name.end(), [=](char letter) { return letter >= first && letter <= last; });
  };
  for (const byte_unit& known : byte_units) {
    if (known.name == name || (known.name == "KB" && name == "kB")) return &known;
    if (equal_but_for_case(known.name, name) && !(has('a', 'z') && has('A', 'Z'))) return &known;
  }
  return nullptr;
}

/// The same for a number with a fraction, an exponent or a unit; rounded to the nearest byte.
[[nodiscard]] inline std::optional<std::int64_t> scaled_bytes(std::string_view text) noexcept {
  double number = 0;
  const auto [end, fault] = parse_double(text, number);
  if (fault != std::errc{}) return std::nullopt;
  std::string_view unit_name = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit_name.starts_with(' ')) unit_name.remove_prefix(1);
  const byte_unit* const unit = unit_of(unit_name);
  if (unit == nullptr) return std::nullopt;
  const double bytes = std::round(number * unit->bytes);
  if (!(bytes >= 0) || bytes >= 0x1p63) return std::nullopt;  // written this way to reject not-a-number too
  return static_cast<std::int64_t>(bytes);
}

/// What to write in place of a size whose unit is of bits, or one letter for two units: "it could be 25MB (25 * 10^6 bytes) or
/// 25MiB (25 * 2^20)". Empty if it is neither.
[[nodiscard]] inline std::string unit_remedy(std::string_view text) {
  constexpr std::string_view prefixes = "KMGTPE";
  double value = 0;
  const auto [end, fault] = parse_double(text, value);
  if (fault != std::errc{}) return {};
  const std::string number{text.substr(0, static_cast<std::size_t>(end - text.data()))};
  std::string_view unit = text.substr(number.size());
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) return {};
  const char capital = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
  const std::size_t prefix = prefixes.find(capital);
  const bool is_of_bits = unit.ends_with('b') && (unit.size() == 2 || (unit.size() == 3 && unit[1] == 'i'));
  if (prefix == prefixes.npos || (unit.size() != 1 && !is_of_bits)) return {};
  return (is_of_bits ? std::string{unit} + " is a unit of bits; write " : std::string{"it could be "}) + number + capital +
         "B (" + number + " * 10^" + std::to_string(3 * (prefix + 1)) + " bytes) or " + number + capital + "iB (" + number +
         " * 2^" + std::to_string(10 * (prefix + 1)) + ")";
}

}  // namespace detail

/// Parses a size written by a person: "12884901888", "1.5e9", "12GB" (12 * 10^9), "12GiB" (12 * 2^30). Units are B, KB to EB and
/// KiB to EiB, also wholly in upper or in lower case, and kB; a fraction is rounded to the nearest byte. "12Gb" is of bits and
/// "12G" could be either: such text raises an error that shows the correct notation.
[[nodiscard]] inline std::int64_t parse_byte_size(std::string_view text) {
  if (const auto bytes = detail::whole_bytes(text)) return *bytes;
  if (const auto bytes = detail::scaled_bytes(text)) return *bytes;
  if (const std::string remedy = detail::unit_remedy(text); !remedy.empty())
    detail::raise("'" + std::string{text} + "' is not a valid size: " + remedy);
  detail::raise("'" + std::string{text} +
                "' is not a valid size: write bytes from 0 to 2^63-1, such as 1.5e9, 12GB (12 * 10^9) or 12GiB (12 * 2^30)");
}

}  // namespace memprof::inline MEMPROF_ABI
