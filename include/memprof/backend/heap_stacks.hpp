#pragma once

/// @file
/// Records which code asked for a block of the heap: `capture_options::stacks`. A part of the heap's hooks.

#include <memprof/backend/stack_modules.hpp>
#include <memprof/backend/stack_store.hpp>
#include <memprof/backend/stack_walk.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/stack_recorder.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace memprof::inline MEMPROF_ABI::detail {

/// Chooses bytes at random, each with the same probability, independently of all others: a block is in the sample if one of its
/// bytes is, so with the probability 1 - exp(-bytes / `stack_sample_bytes`). Belongs to one thread.
class byte_sample {
 public:
  [[nodiscard]] bool takes(std::size_t bytes) noexcept {
    if (state_ == 0) [[unlikely]]
      seed(static_cast<std::uint64_t>(monotonic_ns()) ^ reinterpret_cast<std::uintptr_t>(this));
    if (bytes < left_) [[likely]] {
      left_ -= bytes;
      return false;
    }
    left_ = distance();
    return true;
  }

  void seed(std::uint64_t value) noexcept {
    state_ = value * 0x9E3779B97F4A7C15U | 1;
    for (int round = 0; round < 8; ++round) (void)random();
    left_ = distance();
  }

 private:
  /// xorshift64*
  [[nodiscard]] std::uint64_t random() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }

  /// The number of the next chosen byte, from 1: exponentially distributed with the mean `stack_sample_bytes`. By von Neumann's
  /// method ("Various techniques used in connection with random digits", 1951), which compares random numbers alone: a logarithm
  /// would have C programs under `memprof run` load the library of mathematics.
  [[nodiscard]] std::uint64_t distance() noexcept {
    for (std::uint64_t whole = 0;; ++whole) {
      const std::uint64_t first = random();
      std::uint64_t last = first;
      bool is_even = true;
      for (std::uint64_t next = random(); next < last; next = random()) {
        last = next;
        is_even = !is_even;
      }
      static_assert(stack_sample_bytes == std::size_t{1} << 16);
      if (is_even) return (whole << 16) + (first >> 48) + 1;
    }
  }

  std::uint64_t state_ = 0;
  std::uint64_t left_ = 0;
};

/// The part of each thread.
struct stack_thread {
  byte_sample sample;
  std::uintptr_t walking_at = 0;  ///< the frame that walks this thread's stack; 0: none
  bool has_walked = false;
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local stack_thread this_stack_thread{};

/// The process's recorder. Never destroyed.
struct heap_stack_recorder : abi_1::stack_recorder {
  stack_walker walker;
  stack_store* store = nullptr;

  constexpr heap_stack_recorder() noexcept : abi_1::stack_recorder{prepare_recorder} {}

  static void prepare_recorder(abi_1::stack_recorder& general) noexcept {
    auto& self = static_cast<heap_stack_recorder&>(general);
    self.walker.choose();
    self.way = self.walker.way();
    if (self.store != nullptr) return;
    if (void* const pages = map_pages(sizeof(stack_store))) self.store = new (pages) stack_store;
  }
};
inline constinit heap_stack_recorder process_stacks{};

/// Captures find the recorder in the registry.
inline const bool has_stack_recorder = [] {
  abi_1::process_registry.stacks.store(&process_stacks, std::memory_order_release);
  return true;
}();

/// The thread's first walk: the loader then allocates what the walking library keeps for each thread.
[[gnu::cold, gnu::noinline]] inline void walk_first(stack_thread& self) noexcept {
  const internal_guard hidden;
  void* frames[max_stack_frames];
  (void)process_stacks.walker.walk(frames, static_cast<int>(max_stack_frames));
  self.has_walked = true;
}

/// The name of a stack that was not seen before; 0 if there is none.
[[nodiscard, gnu::cold, gnu::noinline]] inline label name_new_stack(registry& shared, const walked_stack& stack) noexcept {
  loaded_module modules[max_stack_frames];
  for (std::size_t index = 0; index < stack.count; ++index) {
    // A call's return address may lie behind the end of its function, but not of its module.
    modules[index] = find_module_of(reinterpret_cast<std::uintptr_t>(stack.frames[index]) - 1);
  }
  const control_guard control{shared};
  return process_stacks.store->add(shared, process_stacks, stack, modules);
}

/// How many of a walk's innermost frames are the hook's, which returns to that address; 1, the walking function, if it is not
/// among the first.
[[nodiscard]] inline int hook_frames(void* const* frames, int found, const void* returns_to) noexcept {
  constexpr int most = 8;
  for (int index = 1; index < found && index <= most; ++index) {
    if (frames[index] == returns_to) return index;
  }
  return 1;
}

/// The name of the stack of what called the hook, which returns to `returns_to`; 0 if it cannot be had.
///
/// A hook that finds its own thread walking was called by a signal handler, or by the walker itself, and gives its block no
/// stack; unless that walk lies further in on the stack: then a handler left it by `siglongjmp`.
[[nodiscard, gnu::always_inline]] inline label stack_of_this_call(registry& shared, const void* returns_to) noexcept {
  const errno_guard kept;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  stack_thread& self = this_stack_thread;
  label name = 0;
  if (process_stacks.store != nullptr && here >= self.walking_at) [[likely]] {
    if (!self.has_walked) [[unlikely]]
      walk_first(self);
    void* frames[max_stack_frames + 1];
    self.walking_at = here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const int found = process_stacks.walker.walk(frames, static_cast<int>(max_stack_frames) + 1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    self.walking_at = 0;
    if (found > 1) {
      const int own = hook_frames(frames, found, returns_to);
      const walked_stack stack{frames + own, static_cast<std::size_t>(found - own)};
      name = process_stacks.store->find(stack.hash());
      if (name == 0) name = name_new_stack(shared, stack);
    }
  }
  if (name == 0) process_stacks.missing.fetch_add(1, std::memory_order_relaxed);
  return name;
}

/// Whether a block of that size gets a stack.
[[nodiscard]] inline bool wants_stack(std::uint32_t recorded, std::size_t bytes) noexcept {
  return recorded == static_cast<std::uint32_t>(stack_capture::all) || bytes >= stacked_from_bytes ||
         this_stack_thread.sample.takes(bytes);
}

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
