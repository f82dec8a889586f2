#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>

#include <string>
#include <string_view>

/// @file
/// Why more was reserved than allocated, in a few lines.

namespace memprof::inline MEMPROF_ABI {

/// "3.10 GiB soft (free segments and ends of segments, which never merge), 300 MiB hard (between blocks)": the largest cause
/// first. `asking`: the `stream\x1fpool` of the request; empty: unknown. Empty if nothing is unused.
[[nodiscard]] std::string to_text(const fragmentation& parts, std::string_view asking = {});

/// The causes at the peak and at the first failure, and which setting helps, under the headings "Unused" and "Helps".
[[nodiscard]] std::string to_text(const reserved_causes& of, const text_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
