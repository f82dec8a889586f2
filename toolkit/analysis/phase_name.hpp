#pragma once

#include <memprof/toolkit/format/log_line.hpp>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Whether a segment is an occurrence of a phase: it has the phase's name, optionally followed by a separator and something that
/// ends in a digit. So "FORWARD_PASS", "FORWARD_PASS_micro_3" and "FORWARD_PASS/2" are occurrences of "FORWARD_PASS", but
/// "FORWARD_PASS_DONE" is not.
[[nodiscard]] constexpr bool is_occurrence(std::string_view segment, std::string_view phase) noexcept {
  if (!segment.starts_with(phase)) return false;
  const std::string_view rest = segment.substr(phase.size());
  if (rest.empty()) return true;
  return !detail::is_letter(rest.front()) && !detail::is_digit(rest.front()) && detail::is_digit(rest.back());
}

}  // namespace memprof::inline MEMPROF_ABI
