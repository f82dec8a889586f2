#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/check.hpp>

#include <string>

/// @file
/// A checked run as text.

namespace memprof::inline MEMPROF_ABI {

/// What a condition limits: "peak of cpu", "peak of cpu in FORWARD_PASS", "peak of operation forward/attention in cpu", "growth
/// of cpu per step".
[[nodiscard]] std::string condition_name(const check_condition& of);

/// What came out, on one line, with who brought it over: "peak of cpu 25.1 GiB is 1.10 GiB over 24.0 GiB: h.11.mlp +1.30 GiB
/// since the baseline".
[[nodiscard]] std::string condition_text(const check_condition& of);

/// The first line of every report: "check: failed: ", or "passed", and the sentence of the first condition that failed, or of the
/// one that is nearest to its limit.
[[nodiscard]] std::string verdict_of(const check_report& of);

/// The verdict, on one line however long it is; then, in lines of at most `options.columns` columns, the conditions that failed
/// and their owners, the first of the others, or all of them, and the caveats.
[[nodiscard]] std::string to_text(const check_report& of, const text_options& options = {}, bool shows_all = false);

}  // namespace memprof::inline MEMPROF_ABI
