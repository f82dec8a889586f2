#pragma once

#include <memprof/record/backend_guard.hpp>
#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/record/status_file.hpp>

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#endif

/// @file
/// What happens to a capture when the process forks, and when the library that began it is unloaded.

namespace memprof::inline MEMPROF_ABI::detail {

/// The signals that the forking thread had blocked. Under the registry's lock.
inline constinit sigset_t blocked_before_fork{};

/// Holds the lock across `fork`, so that the child never sees a half-done drain. Fork handlers that the program registered before
/// ours run in between: whatever their thread records or drains, it does under the lock it already holds. Signals wait until the
/// end of `fork`: a handler could record while the lock is taken, or before the child has left the capture to its parent.
inline void before_fork() noexcept {
  registry& shared = abi_1::process_registry;
  sigset_t all;
  sigset_t blocked;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &blocked);
  shared.lock.lock();
  blocked_before_fork = blocked;
  shared.forking_process = process_id();
  shared.forking.store(&abi_1::this_thread, std::memory_order_relaxed);
  // So that every event goes through `make_room` until the handlers are done, and the child's events stay out of the parent's
  // file.
  if (abi_1::this_thread.has_ring()) abi_1::this_thread.ring->limit.store(nullptr, std::memory_order_relaxed);
}

inline void after_fork_in_parent() noexcept {
  registry& shared = abi_1::process_registry;
  shared.forking.store(nullptr, std::memory_order_relaxed);
  const sigset_t blocked = blocked_before_fork;
  shared.lock.unlock();
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

/// A child starts without a capture. The parent's ledger is left in place: freeing it would touch pages for nothing. A child that
/// has done this may do it again.
inline void leave_capture_to_parent() noexcept {
  registry& shared = abi_1::process_registry;
  shared.forking.store(nullptr, std::memory_order_relaxed);
  shared.lock.reset();
  shared.backend_lock.reset();
  backend_lock_owner.store(0, std::memory_order_relaxed);
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  shared.heap_stacks.store(0, std::memory_order_relaxed);
  if (auto* const reserved = shared.phantom.load(std::memory_order_relaxed); reserved != nullptr) reserved->reset_lock();
  if (auto* const own = shared.profiler_blocks.load(std::memory_order_relaxed); own != nullptr) own->reset_lock();
  shared.drain = nullptr;
  shared.put_event = nullptr;
  shared.define_name = nullptr;
  shared.define_space = nullptr;
  shared.add_fact_records = nullptr;
  shared.visit_live_blocks = nullptr;
  shared.capture = nullptr;
  shared.ring_bytes -= leave_file_to_parent(shared.rings.load(std::memory_order_relaxed));
  // If the system does not unmap them, they stay in place and nothing stores there.
  if (shared.places != nullptr) (void)::munmap(shared.places->mapping, shared.places->mapping_bytes);
  shared.places = nullptr;
  shared.trace_file.close();
  process_status.leave_to_parent();
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->tail = ring->slots->published.load(std::memory_order_relaxed);
    ring->limit.store(nullptr, std::memory_order_relaxed);
    ring->doing.store(activity::idle, std::memory_order_relaxed);
    // Only the thread that forked lives on.
    ring->owner.reset();
    if (ring == abi_1::this_thread.ring) (void)ring->owner.take();
  }
}

inline void after_fork_in_child() noexcept {
  leave_capture_to_parent();
  ::pthread_sigmask(SIG_SETMASK, &blocked_before_fork, nullptr);
}

/// Registers the fork handlers once per process. Under the lock.
inline void watch_forks(registry& shared) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  if (shared.has_fork_handlers) return;
  shared.has_fork_handlers = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
#endif
}

/// Keeps the library that contains this code loaded, because the registry now points to its functions. Hidden, because the
/// address of a visible function may be that of another library's copy.
[[gnu::visibility("hidden")]] inline void pin_module() noexcept {
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
  const internal_guard hidden;  // the loader allocates
  Dl_info module{};
  if (::dladdr(reinterpret_cast<void*>(&pin_module), &module) == 0 || module.dli_fname == nullptr) return;
  // Fails for the executable itself, which needs no pin. The handle is deliberately kept.
  (void)::dlopen(module.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

}  // namespace memprof::inline MEMPROF_ABI::detail
