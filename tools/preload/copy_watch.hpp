#pragma once

#include <memprof/detail/pages.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace memprof_preload {

/// Whether this process is a copy that no fork handler has seen: made by `_Fork` or the bare system call `clone`. Its rings lie
/// in its parent's trace, where nothing of it may go. The system clears a page in every copy, but not where the copy shares
/// memory.
class copy_watch {
 public:
  /// Where Linux has no such page (before 4.14), no copy is noticed.
  void begin() noexcept {
    const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page = memprof::detail::map_pages(bytes);
    if (page == nullptr) return;
    if (::madvise(page, bytes, MADV_WIPEONFORK) != 0) return memprof::detail::unmap_pages(page, bytes);
    is_known_ = new (page) std::atomic<std::uint32_t>{1};
  }

  [[nodiscard, gnu::always_inline]] bool is_copy() const noexcept {
    return is_known_->load(std::memory_order_relaxed) == 0;  // only a thread of the copy itself changes it
  }

  /// The process has left its parent's capture.
  void accept() noexcept { is_known_->store(1, std::memory_order_relaxed); }

 private:
  inline static constinit std::atomic<std::uint32_t> always_known_{1};
  std::atomic<std::uint32_t>* is_known_ = &always_known_;
};

/// This process's.
inline constinit copy_watch copies;

/// Called before anything is recorded: a copy leaves the capture to its parent. Defined in preload.cpp.
[[gnu::cold, gnu::noinline]] void leave_to_parent() noexcept;
[[gnu::always_inline]] inline void leave_if_copy() noexcept {
  if (copies.is_copy()) [[unlikely]]
    leave_to_parent();
}

}  // namespace memprof_preload
