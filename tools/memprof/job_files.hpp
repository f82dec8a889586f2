#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tool {

/// What one process of a job left.
struct job_file {
  std::string path;
  std::string trace;         ///< beside a profile, the trace of the same name; empty: there is none
  std::int64_t rank = -1;    ///< by its name, as in `_rank3`; -1: it says none
  bool is_leftover = false;  ///< the process ended before the file got its name
};

/// The recordings among `paths`, and those in the folders among them, in the order of their names; a profile with its trace is
/// one. Throws `memprof::error` if a folder cannot be read, or if there is no recording in one.
[[nodiscard]] std::vector<job_file> files_of_job(const std::vector<std::string>& paths);

}  // namespace memprof_tool
