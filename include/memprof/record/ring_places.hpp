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

/// Replaces mapped pages with private pages of zeros. False if the system has no memory.
///
/// A concurrent store by another thread goes to the old page or the new one: the system replaces each page as a whole, with none
/// missing in between. That is not a data race, because mmap does not access memory in the sense of C++. The thread sanitizer
/// would take the call for a write of every byte, so it is hidden from it; the sanitizer does see stores into the new pages.
[[nodiscard]] inline bool exchange_pages(void* begin, std::size_t bytes) noexcept {
  constexpr int access = PROT_READ | PROT_WRITE;
  constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__linux__) && defined(SYS_mmap)
  return ::syscall(SYS_mmap, begin, bytes, access, kind, -1, 0L) != -1;
#else
  return ::mmap(begin, bytes, access, kind, -1, 0) != MAP_FAILED;
#endif
}

/// The mapped pages of the active capture's trace file, and the places for rings in them. Used under the registry's lock, except
/// where noted.
struct ring_places {
  static_assert(sizeof(ring_slots) == detail::live_ring_header::size);

  unsigned char* mapping = nullptr;  ///< of the file, starting at the page where its live area begins
  std::size_t mapping_bytes = 0;

  unsigned char* first = nullptr;  ///< first place
  std::size_t place_bytes = 0;
  std::uint32_t capacity = 0;  ///< events per place
  std::uint32_t count = 0;     ///< places in the mapping
  std::uint32_t given = 0;
  std::uint32_t spare = 0;                 ///< places reserved at a time: threads may arrive faster than the disk provides room
  std::uint32_t capture = 0;               ///< the number of the capture
  std::atomic<std::uint32_t> reserved{0};  ///< places with disk space; set by the file's writer
  std::atomic<bool> is_short{false};       ///< more should be reserved
  std::atomic<std::uint32_t>* wake_word = nullptr;  ///< incremented when the file's writer has something to do
  std::atomic<std::uint64_t>* given_in_file = nullptr;
  std::atomic<std::uint64_t>* rings_outside = nullptr;  ///< in the file: number of rings without a place

  /// Whether there is a place for a ring of that many events.
  [[nodiscard]] bool has_place(std::uint32_t events) const noexcept {
    // Acquire pairs with the release by the writer that reserved it.
    return events == capacity && given < reserved.load(std::memory_order_acquire);
  }

  /// Empty slots for the ring with that id, which has given the capture `drained` events; requires `has_place`.
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
    // Last, because it makes the place valid. Release, so that a reader of the file sees the rest.
    slots->published.store(slots->first, std::memory_order_release);
    given_in_file->store(given, std::memory_order_release);
    return slots;
  }

  /// Whether these slots lie in the mapping.
  [[nodiscard]] bool holds(const ring_slots* slots) const noexcept {
    const auto* const position = reinterpret_cast<const unsigned char*>(slots);
    return position >= first && position < first + count * place_bytes;
  }

  /// Detaches a ring in the mapping from the file: its slots become private pages, empty and at the same addresses, so that a
  /// thread about to write there does no harm. False if the system has no memory.
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
    // The thread stores the cursor before it publishes. Either it has already published into the new pages, or it will, or it is
    // not writing at all.
    event* unknown = nullptr;
    event* const next = ring.cursor.load(std::memory_order_relaxed);
    (void)slots.published.compare_exchange_strong(unknown, next, std::memory_order_release, std::memory_order_relaxed);
    ring.tail = slots.published.load(std::memory_order_relaxed);
    return true;
  }

  /// Detaches all rings from the file. False if one could not be detached.
  bool detach_all(event_ring* rings) noexcept {
    bool are_detached = true;
    for (event_ring* ring = rings; ring != nullptr; ring = ring->next) {
      if (holds(ring->slots) && !detach(*ring)) are_detached = false;
    }
    return are_detached;
  }

  /// Unmaps the pages that no ring uses.
  void unmap() noexcept {
    if (mapping == nullptr) return;
    unsigned char* const unused = first + given * place_bytes;
    ::munmap(mapping, static_cast<std::size_t>(first - mapping));
    if (unused != mapping + mapping_bytes) ::munmap(unused, static_cast<std::size_t>(mapping + mapping_bytes - unused));
    mapping = nullptr;
  }
};

/// Run in a child after `fork` for rings that lie in its parent's file: they lose their slots and get new ones with the next
/// event. Needs no memory, so it cannot fail. Returns the number of bytes by which the rings shrank.
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
