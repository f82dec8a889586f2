#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace memprof_tool {

/// Runs a program, found as a shell does, with its output and errors on our output and in `log`. Returns its exit status, as a
/// shell has it: 128 and the signal's number where one ended it. Throws `memprof::error` if it cannot be started or the log not
/// written.
[[nodiscard]] int run_and_log(const std::vector<std::string>& command, const std::filesystem::path& log);

}  // namespace memprof_tool
