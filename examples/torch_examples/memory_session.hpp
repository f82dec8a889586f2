#pragma once

#include <memprof/record/session.hpp>

#include <cstdint>

namespace torch_examples {

/// What each of the programs understands.
struct options {
  bool no_dispatch = false;  ///< compute nothing and allocate nothing, but record what would be
  std::int64_t workers = 2;  ///< threads that load batches; 0: the training loop loads them itself
};

/// All that a program says to memprof before its first tensor. The session records CPU tensors if the environment asks for it
/// (`MEMPROF=1`), simulates the whole program with `--no-dispatch`, and does nothing otherwise.
[[nodiscard]] memprof::session begin_session(const options& given);

/// Reads the command line and calls the program. Returns the exit status: 2, after a line on stderr, if something was wrong.
int run(int argument_count, char** arguments, void (*program)(const options&));

}  // namespace torch_examples
