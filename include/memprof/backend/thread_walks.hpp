#pragma once

#include <memprof/backend/stack_reuse.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/detail/thread_claim.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <new>

namespace memprof::inline MEMPROF_ABI::detail {

/// The last walks of all threads. That of a thread that is gone goes to another one.
class thread_walks {
 public:
  constexpr thread_walks() noexcept = default;

  /// One that belongs to the calling thread until it ends; null if the system has no memory. Not under
  /// the registry's lock.
  [[nodiscard, gnu::cold, gnu::noinline]] last_walk* take(registry& shared) noexcept {
    const control_guard control{shared};
    // In the child of a `fork`, nobody could tell which of them have no thread any more.
    if (const std::int64_t process = process_id(); process != process_) process_ = process, first_ = nullptr;
    for (owned_walk* each = first_; each != nullptr; each = each->next) {
      if (!each->owner.take()) continue;
      each->walk.reset();
      return &each->walk;
    }
    void* const pages = map_pages(sizeof(owned_walk));
    if (pages == nullptr) return nullptr;
    auto* const made = new (pages) owned_walk;  // which leaves the frames' pages untouched
    made->next = first_;
    first_ = made;
    bytes_ += sizeof(owned_walk);
    (void)first_->owner.take();
    return &first_->walk;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct owned_walk {
    thread_claim owner;
    owned_walk* next = nullptr;
    last_walk walk;
  };

  owned_walk* first_ = nullptr;
  std::int64_t process_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
