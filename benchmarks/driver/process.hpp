#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bench {

using command = std::vector<std::string>;

/// What became of a program that ran to its end.
struct finished_process {
  int status = 0;  ///< exit status; 128 + signal if a signal ended it
  std::string output;
  double wall_seconds = 0;
  double cpu_seconds = 0;  ///< its own and that of the processes it waited for
};

/// Runs a program and waits for it. Its stderr is dropped, its stdout kept. `variables` (`NAME=value`) are added to its
/// environment. Throws `std::runtime_error` if it cannot be started.
[[nodiscard]] finished_process run(const command& line, const std::vector<std::string>& variables = {});

/// The same, but throws with the program's name if it fails.
[[nodiscard]] finished_process run_or_throw(const command& line, const std::vector<std::string>& variables = {});

/// Where PATH has a program of that name.
[[nodiscard]] std::optional<std::string> find_program(const std::string& name);

}  // namespace bench
