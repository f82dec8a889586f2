#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof_python {

/// Which lines of Python ask for blocks: the stack of the calling thread, read from the interpreter's own frames.
///
/// libtorch allocates without the interpreter's lock, and to wait for that within an allocation could stop the program for good:
/// who holds it may wait for the allocator. So nothing is called that needs it. A thread that executes C++ code has frames that
/// nobody changes and code that they keep alive; only where they are depends on the version of Python.
class interpreter_stack {
 public:
  /// Throws `memprof::error` if the frames of this Python cannot be read.
  static void require_readable();

  /// `label_of_caller` answers from now on, for blocks of at least `from_bytes`. Frames of files in `own_folder` are left out.
  static void begin(std::size_t from_bytes, std::string own_folder);

  /// The label that an allocation of that size gets: the name of the calling thread's stack, as docs/trace_format.md has it. 0:
  /// the block is too small, the thread executes no Python, or its stack cannot be named. Some 0.25 us a call of the stack.
  [[nodiscard]] static std::uint32_t label_of_caller(std::size_t bytes) noexcept;

  /// Of blocks since `begin`: those whose stack could not be named.
  [[nodiscard]] static std::int64_t unnamed() noexcept;
};

}  // namespace memprof_python
