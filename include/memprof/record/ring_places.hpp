#pragma once

#include <memprof/record/event_ring.hpp>
#include <memprof/trace/file_layout.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// Puts pages of zeros, which are the process's own, in the place of mapped ones. False if the system has no memory.
///
/// A store of another thread that is on its way goes to the old page or to the new one: the system exchanges each as a whole, and
/// none is missing in between. That is no data race, as mmap does not access memory in the sense of C++. The thread sanitizer
/// takes it for a write of every byte, so it is not to see the call; what is stored into the new pages it does see.
[[nodiscard]] inline bool exchange_pages(void* begin, std::size_t bytes) noexcept {
  constexpr int access = PROT_READ | PROT_WRITE;
  constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__linux__) && defined(SYS_mmap)
  return ::syscall(SYS_mmap, begin, bytes, access, kind, -1, 0L) != -1;
#else
  return ::mmap(begin, bytes, access, kind, -1, 0) != MAP_FAILED;
#endif
}

/// The pages of the active capture's trace file that are mapped, and the places for rings in them. Used under the registry's
/// lock, but for what says otherwise.
struct ring_places {
  static_assert(sizeof(ring_slots) == detail::live_ring_header::size);

  unsigned char* mapping = nullptr;  ///< of the file, from the page on in which its live area begins
  std::size_t mapping_bytes = 0;

  unsigned char* first = nullptr;  ///< place
  std::size_t place_bytes = 0;
  std::uint32_t capacity = 0;  ///< events that a place holds
  std::uint32_t count = 0;     ///< of places in the mapping
  std::uint32_t given = 0;
  std::uint32_t spare = 0;                 ///< so many are made ready at a time: threads may come faster than a disk gives room
  std::uint32_t capture = 0;               ///< the number of the capture
  std::atomic<std::uint32_t> reserved{0};  ///< places for which the file has room on its disk; the file's writer sets it
  std::atomic<bool> is_short{false};       ///< more should be
  std::atomic<std::uint32_t>* wake_word = nullptr;  ///< counts up when the file's writer has something to do
  std::atomic<std::uint64_t>* given_in_file = nullptr;
  std::atomic<std::uint64_t>* rings_outside = nullptr;  ///< in the file: rings without a place

  /// Whether there is a place for a ring of so many events.
  [[nodiscard]] bool has_place(std::uint32_t events) const noexcept {
    // Acquire pairs with the release of who reserved it.
    return events == capacity && given < reserved.load(std::memory_order_acquire);
  }

  /// Empty slots for the ring of that id, which has given the capture `drained` events; call it only after `has_place`.
  [[nodiscard]] ring_slots* take(std::uint32_t ring, std::uint64_t drained) noexcept {
    unsigned char* const place = first + given++ * place_bytes;
    const std::uint32_t ready = reserved.load(std::memory_order_relaxed);
    if (ready < count && given + spare / 2 >= ready) {
      is_short.store(true, std::memory_order_relaxed);
      wake_word->fetch_add(1, std::memory_order_release);
      wake_word->notify_one();
    }
    auto* const slots = new (place) ring_slots{};
    slots->first = reinterpret_cast<event*>(slots + 1);
    slots->first_number = drained;
    slots->ring = ring;
    slots->capacity = capacity;
    slots->check = detail::live_ring_header::check_of(reinterpret_cast<std::uintptr_t>(slots->first), ring, capacity);
    slots->file_capture = capture;
    slots->is_in_file = 1;
    // Last: it makes the place count. Release, so that who reads the file sees the rest.
    slots->published.store(slots->first, std::memory_order_release);
    given_in_file->store(given, std::memory_order_release);
    return slots;
  }

  /// Whether these slots lie in the mapping.
  [[nodiscard]] bool holds(const ring_slots* slots) const noexcept {
    const auto* const position = reinterpret_cast<const unsigned char*>(slots);
    return position >= first && position < first + count * place_bytes;
  }

  /// Parts a ring in the mapping from the file: its slots become pages of the process's own, empty and at the same addresses, so
  /// that it does no harm if its thread is about to write there. False if the system has no memory for it.
  bool detach(event_ring& ring) noexcept {
    ring_slots& slots = *ring.slots;
    event* const first_slot = slots.first;
    const std::uint64_t first_number = slots.first_number;
    const std::uint32_t id = slots.ring;
    if (!detail::exchange_pages(&slots, place_bytes)) return false;
    slots.first = first_slot;
    slots.first_number = first_number;
    slots.ring = id;
    slots.capacity = capacity;
    slots.file_capture = capture;
    // Its thread stores the cursor before it publishes. Either it has published since the pages are new, or does so later, or is
    // not writing at all.
    event* unknown = nullptr;
    event* const next = ring.cursor.load(std::memory_order_relaxed);
    (void)slots.published.compare_exchange_strong(unknown, next, std::memory_order_release, std::memory_order_relaxed);
    ring.tail = slots.published.load(std::memory_order_relaxed);
    return true;
  }

  /// Parts all rings from the file. False if one could not be.
  bool detach_all(event_ring* rings) noexcept {
    bool are_detached = true;
    for (event_ring* ring = rings; ring != nullptr; ring = ring->next) {
      if (holds(ring->slots) && !detach(*ring)) are_detached = false;
    }
    return are_detached;
  }

  /// Gives the pages back that are no ring's.
  void unmap() noexcept {
    if (mapping == nullptr) return;
    unsigned char* const unused = first + given * place_bytes;
    ::munmap(mapping, static_cast<std::size_t>(first - mapping));
    if (unused != mapping + mapping_bytes) ::munmap(unused, static_cast<std::size_t>(mapping + mapping_bytes - unused));
    mapping = nullptr;
  }
};

/// What a child after `fork` does with rings that lie in a file of its parent's: they lose their slots, and get others from
/// whoever records next. It needs no memory, so it cannot fail. Returns by how many bytes the rings became smaller.
inline std::uint64_t leave_file_to_parent(event_ring* rings) noexcept {
  std::uint64_t bytes = 0;
  for (event_ring* ring = rings; ring != nullptr; ring = ring->next) {
    if (ring->slots->is_in_file == 0) continue;
    bytes += ring->bytes();
    ring->slots = &no_slots;
    ring->tail = nullptr;
    ring->cursor.store(nullptr, std::memory_order_relaxed);
    bytes -= ring->bytes();
  }
  return bytes;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
