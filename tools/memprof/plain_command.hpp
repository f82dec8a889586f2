#pragma once

#include <string>
#include <string_view>

namespace memprof_tool {

/// Ends what a self-recording command has before its script, which the user wrote (python/memprof/run.py).
inline constexpr std::string_view script_runner = "memprof.run";

/// The command line as the user wrote it or might have: "python3 train.py".
[[nodiscard]] inline std::string plain_command(std::string line) {
  const std::string runner = " -m " + std::string{script_runner} + " ";
  const std::size_t at = line.find(runner);
  if (at == std::string::npos) return line;
  const std::string program = line.substr(0, line.find(' '));
  return program.substr(program.rfind('/') + 1) + " " + line.substr(at + runner.size());
}

}  // namespace memprof_tool
