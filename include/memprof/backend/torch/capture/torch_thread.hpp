#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace memprof::inline MEMPROF_ABI::detail {

struct pytorch_operator_call;
class shared_end;

/// A libtorch operator that has begun on a thread but not ended.
struct open_operator {
  const void* function;   ///< its `at::RecordFunction`
  std::uint32_t capture;  ///< the capture in which its scope was recorded; 0: it has none
  open_operation scope;
  bool is_engine_wrapper;  ///< the scope that the autograd engine opens around each node
  bool returns_tensors;    ///< whether it may return tensors
  shared_end* end;         ///< null: it ends on this thread
};

/// A block allocated within an operator that may return it.
struct new_block {
  const void* address;
  std::size_t described_bytes;  ///< the size of the tensor that `description` describes
  label description;            ///< 0: none yet
};

/// What the hooks into libtorch keep for one thread.
struct torch_thread {
  static constexpr std::size_t max_open = 128;  ///< deeper operators count as part of the innermost one that is kept
  static constexpr std::size_t max_undecided = 8;
  static constexpr std::size_t cached_names = 64;
  static constexpr std::size_t cached_texts = 256;
  static constexpr std::size_t cached_gradients = 32;
  static constexpr std::size_t max_new_blocks = 16;
  static constexpr std::size_t cached_shapes = 64;

  struct known_name {
    const char* pointer;
    const char* text;
    std::size_t size;
    label id;
  };
  struct known_text {
    const char* text;
    std::uint32_t size;
    label id;  ///< 0: the entry is empty
  };
  struct known_gradients {
    label scope;
    label gradients;
  };
  struct known_shape {
    static constexpr std::size_t max_rank = 5;
    std::int64_t sizes[max_rank];
    std::uint32_t kind;  ///< rank, element type and `requires_grad`; 0: the entry is empty
    label id;
  };

  open_operator open[max_open];
  std::uint32_t open_count;

  // The outermost open operator that autograd may record; if it does, what is allocated in it is an activation.
  std::uint32_t graph_operator;   ///< its position in `open`, from 1; 0: there is none
  std::uint64_t graph_sequence;   ///< the number of the next autograd node when it began
  std::uint32_t undecided_count;  ///< blocks that it allocated before its first node
  const void* undecided[max_undecided];

  std::uint32_t using_operator;  ///< the outermost open one whose uses of blocks are recorded: its position, from 1; 0: none

  // The outermost open operator that may return tensors, and what was allocated in it.
  std::uint32_t returning_operator;  ///< its position in `open`, from 1; 0: there is none
  std::uint32_t new_block_count;
  new_block new_blocks[max_new_blocks];  ///< the newest

  pytorch_operator_call* call;  ///< the innermost operator that `track_pytorch_ops` counts
  torch_thread* next_parked;

  known_name names[cached_names];               ///< by the name's address
  known_text texts[cached_texts];               ///< by a hash
  known_gradients gradients[cached_gradients];  ///< by the scope's label
  known_shape shapes[cached_shapes];            ///< by a hash
};

/// The objects of threads that have ended, for reuse. They are on the heap because a module loaded at run time takes its
/// thread-local storage from a scarce reserve, and each object has several KiB.
struct parked_torch_threads {
  futex_lock lock;
  torch_thread* first = nullptr;

  /// Zero-initialised; null if the system has no memory.
  [[nodiscard]] torch_thread* take() noexcept {
    torch_thread* taken = nullptr;
    {
      const lock_guard guard{lock};
      if (first == nullptr) return static_cast<torch_thread*>(std::calloc(1, sizeof(torch_thread)));
      taken = first;
      first = taken->next_parked;
    }
    *taken = {};
    return taken;
  }
  void park(torch_thread& ended) noexcept {
    const lock_guard guard{lock};
    ended.next_parked = first;
    first = &ended;
  }
};
inline constinit parked_torch_threads process_parked_torch_threads{};

/// The thread's own object, from its first use to its end.
struct torch_thread_slot {
  torch_thread* thread = nullptr;
  bool has_ended = false;
};
inline constinit thread_local torch_thread_slot this_torch_thread_slot{};

/// Parks the object when the thread ends, unless an operator is still open on it.
struct torch_thread_exit {
  torch_thread_slot* slot = nullptr;
  torch_thread_exit() = default;
  torch_thread_exit(const torch_thread_exit&) = delete;
  torch_thread_exit& operator=(const torch_thread_exit&) = delete;
  ~torch_thread_exit() {
    if (slot == nullptr) return;
    slot->has_ended = true;
    torch_thread* const ended = slot->thread;
    if (ended == nullptr || ended->open_count != 0 || ended->call != nullptr) return;
    slot->thread = nullptr;
    process_parked_torch_threads.park(*ended);
  }
};

[[gnu::cold, gnu::noinline]] inline torch_thread* begin_torch_thread() noexcept {
  torch_thread_slot& slot = this_torch_thread_slot;
  if (slot.has_ended) return nullptr;
  slot.thread = process_parked_torch_threads.take();
  thread_local torch_thread_exit at_exit;
  at_exit.slot = &slot;
  return slot.thread;
}

/// Null during a thread's last destructors and if the system has no memory; what happens then belongs to no operator.
[[nodiscard]] inline torch_thread* this_torch_thread() noexcept {
  torch_thread* const known = this_torch_thread_slot.thread;
  return known != nullptr ? known : begin_torch_thread();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
