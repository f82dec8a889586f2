#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace memprof_tool {

/// Runs a program, found as a shell does, and copies its stdout and stderr to our stdout and to `log`. Returns its exit status as
/// a shell reports it: 128 plus the signal's number if a signal ended it. Throws `memprof::error` if the program cannot be
/// started or the log cannot be opened.
[[nodiscard]] int run_and_log(const std::vector<std::string>& command, const std::filesystem::path& log);

}  // namespace memprof_tool
