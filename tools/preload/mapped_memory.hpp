#pragma once

#include "mapped_ranges.hpp"
#include "next_map.hpp"
#include "unseen.hpp"

#include <memprof/backend/stack_modules.hpp>
#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/memory_name.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace memprof_preload {

/// The anonymous memory that the program maps by `mmap`, in the memory space `mmap`: whole pages, from the address that the
/// system gave. Where a part of a block is unmapped, the block ends and what is left begins, as one block or two.
///
/// A lock is held during the system's call, so that an address that it gives out again is recorded in that order.
class mapped_memory {
 public:
  mapped_memory() noexcept
      : own_(memprof::detail::find_module_of(reinterpret_cast<std::uintptr_t>(&own_place))),
        heap_(memprof::detail::find_module_of(reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_NEXT, "malloc")))),
        page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        space_(memprof::memory_space{"mmap", memprof::host_memory_name}.id()) {}

  /// In the child of a `fork`: forgets what the parent had. Another thread of it may have been in the middle of a change.
  void begin_in_child() noexcept {
    lock_.reset();
    new (&ranges_) mapped_ranges;
  }

  [[nodiscard]] void* map(void* address, std::size_t bytes, int protection, int flags, int file, ::off_t offset,
                          const void* caller) noexcept {
    if (!records(caller)) return next_map::map(address, bytes, protection, flags, file, offset);
    const held whole{*this};
    void* const made = next_map::map(address, bytes, protection, flags, file, offset);
    if (made == MAP_FAILED) return made;
    const memprof::detail::errno_guard kept;
    if ((flags & MAP_FIXED) != 0) remove(made, bytes);
    if ((flags & MAP_ANONYMOUS) != 0) add(made, bytes);
    return made;
  }

  [[nodiscard]] int unmap(void* address, std::size_t bytes, const void* caller) noexcept {
    if (!records(caller)) return next_map::unmap(address, bytes);
    const held whole{*this};
    const int result = next_map::unmap(address, bytes);
    const memprof::detail::errno_guard kept;
    if (result == 0) remove(address, bytes);
    return result;
  }

  [[nodiscard]] void* remap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted,
                            const void* caller) noexcept {
    if (!records(caller)) return next_map::remap(address, old_bytes, bytes, flags, wanted);
    const held whole{*this};
    void* const made = next_map::remap(address, old_bytes, bytes, flags, wanted);
    if (made == MAP_FAILED) return made;
    const memprof::detail::errno_guard kept;
    const bool is_anonymous = ranges_.has(reinterpret_cast<std::uintptr_t>(address));
    if ((flags & keeps_old) == 0) remove(address, old_bytes);  // for 0 bytes, the memory is mapped twice
    if ((flags & MREMAP_FIXED) != 0) remove(made, bytes);
    if (is_anonymous) add(made, bytes);
    return made;
  }

 private:
#if defined(MREMAP_DONTUNMAP)
  static constexpr int keeps_old = MREMAP_DONTUNMAP;
#else
  static constexpr int keeps_old = 4;
#endif

  /// Holds the lock, with the thread's signals blocked, as their handlers may map memory.
  struct held {
    explicit held(mapped_memory& of) noexcept : lock(of.lock_) {}
    memprof::detail::signal_guard no_signals;
    memprof::detail::lock_guard<memprof::detail::futex_lock> lock;
  };

  /// Not what the profiler maps, nor an allocator whose blocks are recorded.
  [[nodiscard]] bool records(const void* caller) const noexcept {
    if (memprof::detail::active_capture() == 0 || is_in(own_, caller) || is_in(heap_, caller)) return false;
    const memprof::detail::activity doing = memprof::abi_1::this_thread.doing().load(std::memory_order_relaxed);
    if (doing == memprof::detail::activity::idle) return true;
    memprof::detail::note_reentrant(memprof::abi_1::process_registry, doing);
    return false;
  }

  [[nodiscard]] std::uintptr_t end_of(const void* address, std::size_t bytes) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) + (bytes + page_ - 1) / page_ * page_;
  }

  void add(const void* address, std::size_t bytes) noexcept {
    const mapped_range added{reinterpret_cast<std::uintptr_t>(address), end_of(address, bytes)};
    if (!ranges_.insert(added)) return memprof::extend::event_sink{}.count_dropped_event();
    record(memprof::extend::event_kind::allocate, added);
  }

  void remove(const void* address, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const mapped_range removed{reinterpret_cast<std::uintptr_t>(address), end_of(address, bytes)};
    mapped_range whole{};
    while (ranges_.take(removed, whole)) {
      record(memprof::extend::event_kind::deallocate, whole);
      if (whole.begin < removed.begin) put_back({whole.begin, removed.begin});
      if (removed.end < whole.end) put_back({removed.end, whole.end});
    }
  }

  void put_back(const mapped_range& left) noexcept { add(reinterpret_cast<const void*>(left.begin), left.end - left.begin); }

  void record(memprof::extend::event_kind kind, const mapped_range& range) const noexcept {
    const std::size_t bytes = kind == memprof::extend::event_kind::allocate ? range.end - range.begin : 0;
    memprof::detail::record_event({0, range.begin, bytes, 0, kind, space_, 0});
  }

  const memprof::detail::loaded_module own_;   ///< this library
  const memprof::detail::loaded_module heap_;  ///< the library whose `malloc` is recorded
  const std::size_t page_;
  const std::uint8_t space_;
  memprof::detail::futex_lock lock_;
  mapped_ranges ranges_;
};

}  // namespace memprof_preload
