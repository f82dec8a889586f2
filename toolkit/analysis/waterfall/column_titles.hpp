#pragma once

#include <memprof/toolkit/analysis/compared_run.hpp>

#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The last parts of the paths, as many as tell all of them apart; where a path is there twice, each gets its number.
[[nodiscard]] std::vector<std::string> names_apart(const std::vector<std::string>& paths);

/// Titles the columns that have none by the modes of their runs, "no dispatch" or "measured"; of three, the first of two without
/// dispatch is an "estimate". If two are called the same, the last columns, which are those of `files`, are called by
/// `names_apart`.
void title_columns(std::vector<compared_run>& columns, const std::vector<std::string>& files);

}  // namespace memprof::inline MEMPROF_ABI
