#pragma once

#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>

#include <cstdint>
#include <string>

/// @file
/// Who grows from step to step, as text.

namespace memprof::inline MEMPROF_ABI {

/// A report in lines of at most `options.columns` columns: the verdict, what will be live `more_steps` steps after the last, and
/// tables of the operations that grow and, below, of those that grew and stopped; at most 20 of each, unless `shows_all`.
[[nodiscard]] std::string to_text(const leak_report& of, std::int64_t more_steps, const text_options& options = {},
                                  bool shows_all = false);

}  // namespace memprof::inline MEMPROF_ABI
