#pragma once

#include <memprof/detail/thread_claim.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a thread is doing inside the profiler, if anything. In every state but `idle`, its hooks do not record.
enum class activity : std::uint32_t {
  idle,
  unattached,  ///< state of `no_ring`, which stands for "none yet"
  recording,   ///< an event is being written; only a signal handler can interrupt it
  busy,        ///< the profiler allocates nothing that a hook sees, so any event now comes from a signal handler
  internal,    ///< the profiler works for the user and may allocate; its allocations are not recorded
  nested,      ///< a tracked resource calls its upstream; what that takes from `operator new` is already counted
};

/// An order word that no thread ever holds: a ring with it stamps its next event. See record/event_order.hpp.
inline constexpr std::uint64_t order_unclaimed = ~std::uint64_t{2};

/// The slots of a ring, with everything needed to find the events from the pages alone.
struct ring_slots {
  std::atomic<event*> published;  ///< one past the last published event
  event* first;                   ///< address of the first slot
  std::uint64_t first_number;     ///< how many events the ring held before the one in the first slot
  std::uint32_t ring;             ///< `event_ring::id`
  std::uint32_t capacity;
  std::uint32_t check;         ///< `live_ring_header::check_of`; set for slots in a trace file
  std::uint32_t file_capture;  ///< capture whose trace file gave them a place or had none left; 0: none of these
  std::uint64_t is_in_file;    ///< 1 while they lie in a file's pages, which a child after `fork` shares with its parent
  std::uint64_t unused[2];

  [[nodiscard]] static constexpr std::size_t bytes_for(std::uint32_t capacity) noexcept {
    return sizeof(ring_slots) + capacity * sizeof(event);
  }
};
static_assert(sizeof(ring_slots) == 64);

/// Slots for a ring that has none: zero capacity, so that the next event gets real ones. Recognized by its capacity, not its
/// address, because each library may have its own.
inline constinit ring_slots no_slots{};

/// One thread's event buffer and the state of its recording path. A single producer fills the slots from the start; when they are
/// full it has them drained and starts over, so no index ever wraps. A ring outlives its thread, so that no thread's own memory
/// is ever read, and is then reused by another thread.
struct event_ring {
  // Written by the producer.
  std::atomic<event*> cursor{nullptr};          ///< where the next event goes; also read when a trace file is ended
  std::atomic<event*> limit{nullptr};           ///< end of the slots; null sends the producer's next event down the slow path
  std::uint64_t order_word = order_unclaimed;   ///< the order word under which this thread may leave stamps out
  std::atomic<activity> doing{activity::idle};  ///< read by the thread that grants an order word
  std::uint32_t id = 0;                         ///< from 1; names the ring in the ledger and in the order word
  ring_slots* slots = nullptr;

  // Everything below is used under the registry's lock.
  alignas(64) event* tail = nullptr;  ///< first event not yet drained
  event* drain_limit = nullptr;       ///< how far the running drain goes
  std::uint64_t last_stamp = 0;       ///< of the last drained event that had one; events without one follow it
  std::uint64_t drained = 0;          ///< events that it has given the active capture
  std::uint32_t capture = 0;          ///< the capture its thread has joined
  std::uint32_t thread = 0;           ///< number of its thread within the process, from 1; 0: `leave_unfinished_record` left it
  event_ring* next = nullptr;
  detail::thread_claim owner;  ///< held by its thread until the thread is gone, however it ends

  /// Ids of names that this ring's threads used recently, by hash; only the producer reads and writes them.
  struct cached_label {
    const char* text;
    std::uint32_t size;
    label id;
  };
  static constexpr std::size_t cached_labels = 64;
  cached_label label_cache[cached_labels] = {};

  /// Operations of this ring's thread that ended before an operation nested in them; only the producer uses them.
  struct early_end {
    std::uint32_t number;  ///< 0: unused
    std::uint32_t outer;
    label outer_name;
  };
  static constexpr std::size_t max_early_ends = 16;
  early_end early_ends[max_early_ends] = {};

  event_ring() = default;
  constexpr explicit event_ring(activity forever) noexcept : doing(forever) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(event_ring) + ring_slots::bytes_for(slots->capacity); }
};

/// The ring of a thread that has none yet. Never written.
inline constinit event_ring no_ring{activity::unattached};

}  // namespace memprof::inline MEMPROF_ABI::detail

// Versions of one layout pass these to each other.
namespace memprof::abi_1 {

/// A thread's own part of the recording path.
struct thread_slot {
  detail::event_ring* ring = &detail::no_ring;                               ///< never null
  std::atomic<detail::activity> doing_without_ring{detail::activity::idle};  ///< stands in for the ring's while there is none
  std::uint32_t last_scope = 0;       ///< number of the operation that this thread opened last, from 1
  std::uint32_t innermost_scope = 0;  ///< number of the innermost open operation; 0: none
  extend::label innermost_name = 0;   ///< name of the innermost open operation that the program itself named; 0: none

  [[nodiscard]] bool has_ring() const noexcept {
    return ring->doing.load(std::memory_order_relaxed) != detail::activity::unattached;
  }
  [[nodiscard]] std::atomic<detail::activity>& doing() noexcept { return has_ring() ? ring->doing : doing_without_ring; }
};

/// What `registry::make_room` did.
enum class room : std::uint8_t { none, made, made_for_new_thread };

}  // namespace memprof::abi_1

namespace memprof::inline MEMPROF_ABI::detail {

using abi_1::room;
using abi_1::thread_slot;

}  // namespace memprof::inline MEMPROF_ABI::detail
