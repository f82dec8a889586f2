#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

/// @file
/// A line of a tracker's log, and its role in a memory summary.

namespace memprof::inline MEMPROF_ABI::detail {

/// `provenance::format` of a log.
inline constexpr std::string_view tracker_format = "tracker_log";

enum class tracker_line_kind {
  text,          ///< anything else
  header,        ///< === Memory Usage Summary ===
  segment,       ///< --- NAME ---
  usage,         ///< DRAM: Segment Peak 1.00 MB, Allocations 2.00 MB, Deallocations 1.50 MB, Segment Change +0.50 MB
  cumulative,    ///< DRAM: Cumulative Peak 1.00 MB, Cumulative Current 0.50 MB
  totals_title,  ///< === Final Totals ===
  totals,        ///< Overall DRAM Peak: 1.00 MB, Final DRAM Usage: 0.50 MB
  l1,            ///< L1: Peak CB 0.29 MB, ...
  parameters,    ///< Number of parameters: 1134596096, or Total parameters: 1,134,596,096
  overwritten,   ///< WARNING: Trace 'NAME' already exists, overwriting
};

inline constexpr std::string_view summary_header = "=== Memory Usage Summary ===";

/// A line without the prefixes of launchers and loggers.
struct tracker_line {
  tracker_line_kind kind = tracker_line_kind::text;
  std::string_view prefix;   ///< what precedes `content`
  std::string_view content;  ///< from the words that identify the kind on; for a segment, only its name
};

[[nodiscard]] tracker_line classify(std::string_view text);

/// The memory space in a line such as "  cpu: Segment Peak 1.00 MB, Allocations ..."; empty if there is none, or for DRAM.
[[nodiscard]] std::string_view other_space_in(std::string_view text);

/// Whether a line of text before a summary can be its title.
[[nodiscard]] bool names_a_section(std::string_view content);

/// The number of a rank in a log; -1 if there is none or it exceeds 63 bits.
[[nodiscard]] std::int64_t rank_number(std::string_view digits);

}  // namespace memprof::inline MEMPROF_ABI::detail
