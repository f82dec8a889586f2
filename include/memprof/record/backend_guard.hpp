#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

/// @file
/// The lock that serialises calls to a capture's backends, and what waits for the disk.

namespace memprof::inline MEMPROF_ABI::detail {

/// The thread that holds `registry::backend_lock`; 0: none, or it is unknown, as in another version of the library.
inline constinit std::atomic<std::uint64_t> backend_lock_owner{0};
/// The frame of the function in which it took it.
inline constinit std::atomic<std::uintptr_t> backend_lock_frame{0};
/// How long a call waits for another thread that holds it.
inline constinit std::atomic<std::int64_t> longest_wait_for_backends_ns{60'000'000'000};

/// Holds the backends' lock until the end of the scope, if it gets it. Never taken under the registry's lock, which the backends
/// may take.
///
/// Signals are not blocked meanwhile, as backends and disks may take long, so a handler may leave by `siglongjmp` and never
/// release the lock. The thread notices that if its stack no longer reaches to where it took the lock, and other threads if it
/// has ended: they take over, and the profile is not exact. Elsewhere a handler or a backend may have called in between; then the
/// thread does not wait for itself, nor other threads for longer than a limit.
class [[nodiscard]] backend_guard {
 public:
  [[gnu::noinline]] explicit backend_guard(registry& shared) noexcept : shared_(shared), is_held_(take()) {
    if (!is_held_) {
      note_reentrant(shared_, activity::busy);
      return;
    }
    backend_lock_frame.store(frame(), std::memory_order_relaxed);
    backend_lock_owner.store(thread_id(), std::memory_order_relaxed);
  }
  backend_guard(const backend_guard&) = delete;
  backend_guard& operator=(const backend_guard&) = delete;
  ~backend_guard() {
    if (!is_held_) return;
    backend_lock_owner.store(0, std::memory_order_relaxed);
    shared_.backend_lock.unlock();
  }
  explicit operator bool() const noexcept { return is_held_; }

 private:
  /// Of the constructor, which is not inlined: lower addresses are deeper.
  [[nodiscard, gnu::always_inline]] static std::uintptr_t frame() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }

  [[nodiscard]] static bool has_ended([[maybe_unused]] std::uint64_t thread) noexcept {
#if defined(__linux__)
    const errno_guard kept;
    return ::syscall(SYS_tgkill, ::getpid(), static_cast<::pid_t>(thread), 0) != 0 && errno == ESRCH;
#else
    return false;
#endif
  }

  /// Whether this thread took the lock in a function that it has left. On an alternate stack, a handler may have interrupted it.
  [[nodiscard, gnu::always_inline]] static bool has_left() noexcept {
    stack_t alternate{};
    const bool is_usual_stack = ::sigaltstack(nullptr, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK) == 0;
    return is_usual_stack && frame() >= backend_lock_frame.load(std::memory_order_relaxed);
  }

  [[nodiscard, gnu::always_inline]] bool take() noexcept {
    if (shared_.backend_lock.try_lock()) return true;
    const std::uint64_t self = thread_id();
    if (self != 0 && backend_lock_owner.load(std::memory_order_relaxed) == self) {
      if (!has_left()) return false;
      abi_1::this_thread.doing().store(activity::idle, std::memory_order_relaxed);  // it may have been hidden from the hooks
      note_reentrant(shared_, activity::busy);
      return true;
    }
    return wait();
  }

  /// Waits for another thread.
  [[nodiscard]] bool wait() noexcept {
    constexpr std::int64_t look_ns = 20'000'000;
    const std::int64_t end_ns = monotonic_ns() + longest_wait_for_backends_ns.load(std::memory_order_relaxed);
    do {
      if (shared_.backend_lock.lock_for(look_ns)) return true;
      std::uint64_t owner = backend_lock_owner.load(std::memory_order_relaxed);
      if (owner != 0 && has_ended(owner) && backend_lock_owner.compare_exchange_strong(owner, thread_id())) {
        note_reentrant(shared_, activity::busy);
        return true;
      }
    } while (monotonic_ns() < end_ns);
    return false;
  }

  registry& shared_;
  bool is_held_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
