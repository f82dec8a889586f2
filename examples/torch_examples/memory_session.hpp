#pragma once

#include <memprof/record/session.hpp>

#include <cstdint>

namespace torch_examples {

/// The options of each program.
struct options {
  bool no_dispatch = false;  ///< compute and allocate nothing, but record what would be allocated
  std::int64_t workers = 2;  ///< threads that load batches; 0: the training loop loads them itself
};

/// Everything a program needs for memprof before its first tensor. The session records CPU tensors if the environment requests it
/// (`MEMPROF=1`), simulates the whole program with `--no-dispatch`, and otherwise does nothing.
[[nodiscard]] memprof::session begin_session(const options& given);

/// Parses the command line and calls the program. Returns the exit status: 2, after a line on stderr, on errors.
int run(int argument_count, char** arguments, void (*program)(const options&));

}  // namespace torch_examples
