#pragma once

#include <memprof/profile/fact/missing_source.hpp>

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace memprof_tool {

/// How a program ended, and where its traces are.
struct program_end {
  ::pid_t process = 0;
  int status = 0;              ///< as of `waitpid`
  std::string name = {};       ///< of the program that it was at its end, as the system has it: 15 bytes at most; empty: unknown
  std::size_t unrecorded = 0;  ///< number of processes that could not write a trace
};

/// What is recorded beside the program's own blocks.
struct run_options {
  bool records_children = false;
  bool records_cuda = false;
  bool records_nvtx = false;
  bool records_mappings = false;
  bool records_uses = false;
  bool infers_operations = false;
  std::string stacks = {};  ///< of which blocks: "sampled", "all"; empty: none
};

/// Runs a program with the preload library, which writes the traces of its process, or of those of its children as well, into a
/// folder; without a library, the program does so itself. Where CUDA or NVTX is recorded, it loads the library, too. Passes on
/// signals that are sent to this process. Throws `memprof::error` if no process can be made.
[[nodiscard]] program_end run_recorded(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                                       const std::filesystem::path& library, const std::filesystem::path& folder,
                                       const run_options& options);

/// Ends as that program did: with its status, or by its signal.
[[nodiscard]] int end_like(const program_end& end);

/// Where the library that goes with this program may be: beside it, or where it is installed.
[[nodiscard]] std::array<std::filesystem::path, 2> preload_library_places();

/// The first of these that is there; empty if none is.
[[nodiscard]] std::filesystem::path preload_library();

/// The trace of one process, or of one program of several that a process ran one after the other (`exec`).
struct process_trace {
  std::filesystem::path path;
  ::pid_t process = 0;
  int number = 0;                                     ///< from 1, in order of time
  bool is_replaced = false;                           ///< the process ran another program after this one (`exec`)
  bool still_running = false;                         ///< the process had not ended: what it had recorded so far
  std::string obstacle = {};                          ///< why it could not be written anew; empty: it was, or need not be
  std::vector<memprof::missing_source> missing = {};  ///< what it does not say for that
};

/// The traces in the folder, those of a process together. A trace that its process did not end is written anew, so that it takes
/// no more of the disk than it needs. The program's has as a `missing_source` by which other program it was replaced that did not
/// record, and how many processes could not write a trace. `is_malloc_all`: the processes' memory is recorded as far as `malloc`
/// has it, and no further; if much is beyond, that is a `missing_source` of each. Says so where there is no room to write one
/// anew, which then stays as its process left it. Throws `memprof::error` if the folder is gone.
[[nodiscard]] std::vector<process_trace> traces_in(const std::filesystem::path& folder, const program_end& end,
                                                   bool is_malloc_all);

}  // namespace memprof_tool
