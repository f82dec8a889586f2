#pragma once

#include <memprof/memprof.hpp>


#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace memprof::detail {

struct pytorch_operator_call;
class shared_end;

/// An operator of libtorch that has begun on a thread and not ended.
struct open_operator {
  const void* function;   ///< its `at::RecordFunction`
  std::uint32_t capture;  ///< in which its scope was recorded; 0: it has none
  open_operation scope;
  bool is_engine_wrapper;  ///< what the autograd engine opens around each node
  shared_end* end;         ///< null: it ends on this thread
};

/// What the hooks of libtorch keep for one thread.
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
  torch_thread* next_parked;

  known_name names[cached_names];               ///< by the name's address
  known_gradients gradients[cached_gradients];  ///< by the scope's label
};

/// Objects of threads that have ended, for the next ones. They are on the heap because a module that is loaded at run time takes
/// thread-local storage from a scarce reserve, and they are some KiB.
struct parked_torch_threads {
  futex_lock lock;
  torch_thread* first = nullptr;

  /// All zero; null if the system has no memory.
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

/// Null where a thread's last destructors run, and if the system has no memory: what happens then belongs to no operator.
[[nodiscard]] inline torch_thread* this_torch_thread() noexcept {
  torch_thread* const known = this_torch_thread_slot.thread;
  return known != nullptr ? known : begin_torch_thread();
}

}  // namespace memprof::detail
