#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// @file
/// The ranks of a job as text and as Markdown.

namespace memprof::inline MEMPROF_ABI {

/// A merge in lines of at most `options.columns` columns: which rank stands out and why, the sum and spread of the peaks, which
/// ranks are missing or unfinished and in what they differ, then a row a rank and the ranks' peaks in the segments of each name.
/// Of more than 20 ranks, only those that stand out, the greatest and the least have a row; with `shows_all`, all that were kept.
[[nodiscard]] std::string to_text(const merged_ranks& of, const text_options& options = {}, bool shows_all = false);

/// The same for a pull request or a job's summary: the verdict in bold, and the table of ranks. Names are escaped.
[[nodiscard]] std::string to_markdown(const merged_ranks& of);

/// What the text says first, on one line.
[[nodiscard]] std::string verdict_of(const merged_ranks& of);

/// Ranks that are missing, did not finish or are not exact. A sentence each.
[[nodiscard]] std::vector<std::string> caveats_of(const merged_ranks& of);

}  // namespace memprof::inline MEMPROF_ABI
