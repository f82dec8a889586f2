#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_options.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tool {

/// A process beside the one whose summary is printed, or a program that was replaced by another one (`exec`).
struct other_process {
  ::pid_t process = 0;
  std::string state = {};   ///< "still running", "replaced by exec"; empty: it ended
  std::int64_t peak = 0;    ///< bytes, the greatest of its memory spaces
  std::int64_t at_end = 0;  ///< bytes, of all spaces
  std::int64_t allocations = 0;
  std::string command = {};

  /// Of its profile.
  [[nodiscard]] static other_process of(::pid_t process, std::string state, const memprof::profile& profile);
};

/// A table of the processes with the greatest peaks, `most_processes` at most, and a last row for the others. Empty if there are
/// none.
[[nodiscard]] std::string process_table(std::vector<other_process> processes, const memprof::text_options& options);

inline constexpr std::size_t most_processes = 20;

}  // namespace memprof_tool
