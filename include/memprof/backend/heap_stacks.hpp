#pragma once

/// @file
/// Records which code asked for a block of the heap: `capture_options::stacks`. A part of the heap's hooks.

#include <memprof/backend/byte_sample.hpp>
#include <memprof/backend/frame_rules.hpp>
#include <memprof/backend/stack_modules.hpp>
#include <memprof/backend/stack_reuse.hpp>
#include <memprof/backend/stack_store.hpp>
#include <memprof/backend/stack_walk.hpp>
#include <memprof/backend/thread_walks.hpp>
#include <memprof/backend/walked_stack.hpp>
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

/// The part of each thread.
struct stack_thread {
  byte_sample sample;
  last_walk* last = nullptr;      ///< null: none
  unsigned walks_taken = 0;       ///< until now
  std::uintptr_t walking_at = 0;  ///< the frame that walks this thread's stack; 0: none
  bool has_walked = false;        ///< by the library
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local stack_thread this_stack_thread{};

/// The process's recorder. Never destroyed.
struct heap_stack_recorder : abi_1::stack_recorder {
  stack_walker walker;
  frame_rules rules;
  thread_walks walks;
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

/// Gives the thread a last walk to reuse, in place of one that was left in the middle, if any. Not more than a few.
[[gnu::cold, gnu::noinline]] inline void take_walk(registry& shared, stack_thread& self) noexcept {
  constexpr unsigned most_walks = 16;
  self.last = self.walks_taken < most_walks ? process_stacks.walks.take(shared) : nullptr;
  if (self.last != nullptr) ++self.walks_taken;
}

/// The name of a stack that was not seen before; 0 if there is none.
[[nodiscard, gnu::cold, gnu::noinline]] inline label name_new_stack(registry& shared, const walked_stack& stack) noexcept {
  loaded_module modules[max_stack_frames];
  loaded_module module;
  for (std::size_t index = 0; index < stack.count; ++index) {
    // A call's return address may lie behind the end of its function, but not of its module.
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(stack.frames[index]) - 1;
    if (place < module.begin || place >= module.end) module = find_module_of(place);
    modules[index] = module;
  }
  const control_guard control{shared};
  const label name = process_stacks.store->add(shared, process_stacks, stack, modules);
  process_stacks.bytes = process_stacks.store->bytes() + process_stacks.rules.bytes() + process_stacks.walks.bytes();
  return name;
}

/// Ends a walk. A signal handler that runs before that finds the thread walking.
inline void end_walk(stack_thread& self) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  self.walking_at = 0;
}

/// The name of the stack that the thread's last walk found, without so many innermost frames, and the walk's end.
[[nodiscard, gnu::cold, gnu::noinline]] inline label name_new_walk(registry& shared, stack_thread& self,
                                                                   std::size_t without) noexcept {
  void* frames[max_stack_frames];
  const std::size_t count = self.last->copy(frames, without);
  end_walk(self);
  return name_new_stack(shared, walked_stack{frames, count});
}

/// The name of the stack of what called the hook that this function is a part of, which returns to `returns_to`; 0 if it cannot
/// be had. By the library.
[[nodiscard, gnu::noinline]] inline label name_by_library(registry& shared, stack_thread& self, const void* returns_to) noexcept {
  constexpr int most = static_cast<int>(max_stack_frames + most_hook_frames);
  void* frames[most];
  if (!self.has_walked) [[unlikely]]
    walk_first(self);
  self.walking_at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const int found = process_stacks.walker.walk(frames, most);
  end_walk(self);
  if (found < 2) return 0;
  std::size_t own = 1;  // this function, should the hook's caller not be among the first
  for (std::size_t index = 1; index < static_cast<std::size_t>(found) && index <= most_hook_frames; ++index) {
    if (frames[index] != returns_to) continue;
    own = index;
    break;
  }
  const std::size_t count = static_cast<std::size_t>(found) - own;
  const walked_stack stack{frames + own, count < max_stack_frames ? count : max_stack_frames};
  const label name = process_stacks.store->find(stack.hash());
  return name != 0 ? name : name_new_stack(shared, stack);
}

/// The name of the stack of what called the hook, which returns to `returns_to`; 0 if it cannot be had.
///
/// A hook that finds its own thread walking was called by a signal handler, or by the walker itself, and gives its block no
/// stack; unless that walk lies further in on the stack: then a handler left it by `siglongjmp`, or has a stack of its own.
/// Should that walk go on, it keeps what it works on.
[[nodiscard, gnu::always_inline]] inline label stack_of_this_call(registry& shared, const void* returns_to) noexcept {
  const errno_guard kept;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  stack_thread& self = this_stack_thread;
  label name = 0;
  if (process_stacks.store != nullptr && here >= self.walking_at) [[likely]] {
    if (walks_by_rules && (self.last == nullptr || self.walking_at != 0)) [[unlikely]]
      take_walk(shared, self);
    self.walking_at = here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (self.last != nullptr && self.last->walk(shared, process_stacks.rules, state_of_caller())) [[likely]] {
      const std::size_t own = self.last->frames_inside(reinterpret_cast<std::uintptr_t>(returns_to));
      name = process_stacks.store->find(self.last->hash(own));
      if (name == 0) [[unlikely]]
        name = name_new_walk(shared, self, own);
      else
        end_walk(self);
    } else {
      name = name_by_library(shared, self, returns_to);
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
