#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// @file
/// A comparison of two runs as text and as Markdown.

namespace memprof::inline MEMPROF_ABI {

/// A comparison in lines of at most `options.columns` columns: both moments, why they differ, whether it is the same peak, then
/// tables of the operations, categories and sizes of blocks that differ, the greatest changes first; with `shows_all`, also those
/// that do not differ. "x12" is the number of the program's operations in one row. Equal runs have no tables.
[[nodiscard]] std::string to_text(const comparison& of, const text_options& options = {}, bool shows_all = false);

/// The same for a pull request: a verdict in bold, and a table of the operations that differ, at most `most` of them. Names are
/// escaped.
[[nodiscard]] std::string to_markdown(const comparison& of, std::size_t most = 20);

/// What the text says first, on one line.
[[nodiscard]] std::string verdict_of(const comparison& of);

/// What makes the difference less than it seems: another peak, noise, a run that is not exact. A sentence each.
[[nodiscard]] std::vector<std::string> caveats_of(const comparison& of);

}  // namespace memprof::inline MEMPROF_ABI
