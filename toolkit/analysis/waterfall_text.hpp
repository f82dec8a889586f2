#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>

#include <string>

/// @file
/// A waterfall as text: the peaks, why they differ, and a table of the operations that differ most.

namespace memprof::inline MEMPROF_ABI {

/// A waterfall in lines of at most `options.columns` columns: the answer, then the parts and operations that differ most and the
/// sum of the others, or all of them with `shows_all`. Changes are in the order of the columns; "-" marks an operation that the
/// column does not have, "x12" the number of the program's operations in one row.
[[nodiscard]] std::string to_text(const waterfall& of, const text_options& options = {}, bool shows_all = false);

}  // namespace memprof::inline MEMPROF_ABI
