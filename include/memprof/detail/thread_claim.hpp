#pragma once

#include <memprof/config.hpp>

#include <cerrno>
#include <new>

#include <pthread.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// A thread's claim that ends with the thread, however it ends: by return, `pthread_exit`, cancellation or the bare system call,
/// and after its last destructor. Implemented as a robust mutex that its owner never unlocks: the kernel marks it when the thread
/// is gone.
///
/// The object must stay in memory until then. Not for signal handlers.
class thread_claim {
 public:
  constexpr thread_claim() noexcept = default;
  thread_claim(const thread_claim&) = delete;
  thread_claim& operator=(const thread_claim&) = delete;

  /// Makes the calling thread the owner. False if a living thread already owns it, including this one.
  [[nodiscard]] bool take() noexcept {
    if (!is_made_) make();
    const int result = ::pthread_mutex_trylock(&mutex_);
    if (result == EOWNERDEAD) return ::pthread_mutex_consistent(&mutex_) == 0;
    return result == 0;
  }

  /// Ends the calling thread's claim before the thread ends.
  void give_up() noexcept { ::pthread_mutex_unlock(&mutex_); }

  /// Whether a living thread owns it. While the owner is ending, either answer is possible.
  [[nodiscard]] bool is_held() noexcept {
    if (!take()) return true;
    give_up();
    return false;
  }

  /// Clears the owner. Only for a child after `fork`, where the owners do not exist.
  void reset() noexcept { is_made_ = false; }

 private:
  void make() noexcept {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&mutex_, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
    is_made_ = true;
  }

  pthread_mutex_t mutex_{};
  bool is_made_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
