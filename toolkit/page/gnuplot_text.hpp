#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Text for gnuplot scripts.

namespace memprof::inline MEMPROF_ABI {

enum class picture_format : std::uint8_t { png, svg };

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::inline MEMPROF_ABI::detail {

/// How units of powers of 1024 are named: MiB, or MB as tt-train's analyze_memory.py calls it.
enum class unit_style : std::uint8_t { iec, tracker };

/// The unit of an axis: 2^20 bytes, or a smaller one if all amounts are smaller.
struct picture_unit {
  std::string_view name = "MiB";
  double bytes = 0x1p20;

  [[nodiscard]] double of(std::int64_t amount) const { return static_cast<double>(amount) / bytes; }
  /// "8,278.65 MiB", as in tables, whatever the picture's greatest amount.
  [[nodiscard]] std::string text(std::int64_t amount) const;
};

/// The unit for amounts up to `greatest`.
[[nodiscard]] constexpr picture_unit unit_for(std::int64_t greatest, unit_style style = unit_style::iec) noexcept {
  const bool is_iec = style == unit_style::iec;
  if (greatest == 0 || greatest >= 1 << 20) return {is_iec ? "MiB" : "MB", 0x1p20};
  if (greatest >= 1 << 10) return {is_iec ? "KiB" : "KB", 0x1p10};
  return {"B", 1};
}

/// The amount in a suitable unit, so that a small one keeps its digits: "1.25 MiB", "640.00 KiB", "12 B".
[[nodiscard]] std::string amount_text(std::int64_t amount, unit_style style = unit_style::iec);

/// The length in bytes of the valid UTF-8 character at the start of the text; 0 if there is none (RFC 3629).
[[nodiscard]] constexpr std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xc2 && first <= 0xdf   ? 2
                           : (first & 0xf0) == 0xe0         ? 3
                           : first >= 0xf0 && first <= 0xf4 ? 4
                                                            : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t index = 1; index < size; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return 0;
  }
  // Overlong, a surrogate, or beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return size;
}

/// The text as a gnuplot string. Single-quoted: in double quotes gnuplot runs what is in backquotes. Bytes that are not UTF-8,
/// and control characters, which would end the line, become '?'.
[[nodiscard]] std::string gnuplot_string(std::string_view text);

/// The most lines of a name.
inline constexpr int gnuplot_most_lines = 3;

/// The text as an expression with line breaks at spaces, in lines of at most about `letters` bytes; what exceeds
/// `gnuplot_most_lines` is cut.
[[nodiscard]] std::string gnuplot_lines(std::string_view text, std::size_t letters);

}  // namespace memprof::inline MEMPROF_ABI::detail
