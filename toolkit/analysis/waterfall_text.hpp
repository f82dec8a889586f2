#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>

#include <string>
#include <vector>

/// @file
/// A waterfall as text: the peaks, why they differ, and a table of the operations that differ most.

namespace memprof::inline MEMPROF_ABI {

/// A waterfall in lines of at most `options.columns` columns: the answer, then the parts and operations that differ most and the
/// sum of the others, or all of them with `shows_all`. Changes are in the order of the columns; "-" marks an operation that the
/// column does not have, "x12" the number of the program's operations in one row.
[[nodiscard]] std::string to_text(const waterfall& of, const text_options& options = {}, bool shows_all = false);

/// What the text says first, on one line.
[[nodiscard]] std::string verdict_of(const waterfall& of);

/// What the columns do not have in common. A sentence each.
[[nodiscard]] std::vector<std::string> caveats_of(const waterfall& of);

}  // namespace memprof::inline MEMPROF_ABI
