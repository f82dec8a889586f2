#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// @file
/// Who grows from step to step, as text.

namespace memprof::inline MEMPROF_ABI {

/// A report in lines of at most `options.columns` columns: the verdict, what will be live `more_steps` steps after the last, and
/// tables of the operations that grow and, below, of those that grew and stopped; at most 20 of each, unless `shows_all`.
[[nodiscard]] std::string to_text(const leak_report& of, std::int64_t more_steps, const text_options& options = {},
                                  bool shows_all = false);

/// What the text says first, on one line.
[[nodiscard]] std::string verdict_of(const leak_report& of);

/// What the report leaves out: the first steps of a trace of limited size, events that were lost. A sentence each.
[[nodiscard]] std::vector<std::string> caveats_of(const leak_report& of);

}  // namespace memprof::inline MEMPROF_ABI
