#pragma once

#include <memprof/core/label.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::detail {

struct pytorch_operator_call;
class shared_end;

/// An operator of libtorch that has begun on a thread and not ended.
struct open_operator {
  const void* function;    ///< its `at::RecordFunction`
  std::uint32_t capture;   ///< in which its scope was recorded; 0: it has none
  label name;              ///< of the scope
  std::uint32_t depth;     ///< of the scope
  label outer_scope;       ///< what was the innermost scope of the program before it
  bool is_engine_wrapper;  ///< what the autograd engine opens around each node
  shared_end* end;         ///< null: it ends on this thread
};

/// What the hooks of libtorch keep for one thread. It has no destructor, so that operators may still run while the thread ends.
struct torch_thread {
  static constexpr std::size_t max_open = 128;  ///< operators further in belong to the innermost that is kept
  static constexpr std::size_t max_undecided = 8;
  static constexpr std::size_t cached_names = 64;
  static constexpr std::size_t cached_gradients = 32;

  struct known_name {
    const char* pointer;
    const char* text;
    std::size_t size;
    label id;
  };
  struct known_gradients {
    label scope;
    label gradients;
  };

  open_operator open[max_open];
  std::uint32_t open_count;

  // The outermost open operator that autograd may record: what is allocated in it is an activation if it does.
  std::uint32_t graph_operator;   ///< its position in `open`, from 1; 0: there is none
  std::uint64_t graph_sequence;   ///< the number of the next autograd node when it began
  std::uint32_t undecided_count;  ///< blocks that it allocated before its first node was made
  const void* undecided[max_undecided];

  pytorch_operator_call* call;  ///< innermost operator that `track_pytorch_ops` counts

  known_name names[cached_names];               ///< by the name's address
  known_gradients gradients[cached_gradients];  ///< by the scope's label
};

inline constinit thread_local torch_thread this_torch_thread{};

}  // namespace memprof::detail
