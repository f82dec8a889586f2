#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>

#include <string>
#include <vector>

/// @file
/// The peak that a run would have had with a change, as text.

namespace memprof::inline MEMPROF_ABI {

/// A report in lines of at most `options.columns` columns: both peaks, the change's price and what of it is not known, and who
/// holds what at both; at most 20 owners, unless `shows_all`.
[[nodiscard]] std::string to_text(const what_if_result& of, const text_options& options = {}, bool shows_all = false);
/// Owners with what they have at the peak, and the peak without each.
[[nodiscard]] std::string to_text(const owner_ranking& of, const text_options& options = {}, bool shows_all = false);
/// Owners with the peak without each and those above it. The target is possible.
[[nodiscard]] std::string to_text(const target_answer& of, const text_options& options = {}, bool shows_all = false);

/// What the text says first, on one line.
[[nodiscard]] std::string verdict_of(const what_if_result& of);
[[nodiscard]] std::string verdict_of(const owner_ranking& of);
[[nodiscard]] std::string verdict_of(const target_answer& of);

/// What the change may leave out or overstate. A sentence each.
[[nodiscard]] std::vector<std::string> caveats_of(const what_if_result& of);
[[nodiscard]] std::vector<std::string> caveats_of(const owner_ranking& of);
[[nodiscard]] std::vector<std::string> caveats_of(const target_answer& of);

}  // namespace memprof::inline MEMPROF_ABI
