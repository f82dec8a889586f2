#pragma once

#include <memprof/core/event.hpp>
#include <memprof/core/label.hpp>
#include <memprof/detail/pages.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof {

struct event_ring;

/// Whether a thread is inside the profiler. Everything but `idle` keeps its hooks from recording.
enum class activity : std::uint32_t {
  idle,
  recording,  ///< an event is being written: only a signal handler can come here
  draining,   ///< the thread empties rings: likewise
  internal,   ///< the profiler works for the user and may allocate: its own allocations are invisible
  nested,     ///< a tracked resource asks its upstream: what that takes from `operator new` is counted already
};

/// An order word that nobody ever holds: a thread with it stamps its next event. See core/event_order.hpp.
inline constexpr std::uint64_t order_unclaimed = ~std::uint64_t{2};

/// What the recording path keeps for one thread. A plain struct, so that it costs nothing to reach.
struct thread_context {
  event* cursor = nullptr;                      ///< where the next event goes
  event* limit = nullptr;                       ///< end of the ring's space; equal to `cursor` before the first event
  event_ring* ring = nullptr;                   ///< null until the first event
  std::uint64_t order_word = order_unclaimed;   ///< the order word under which this thread may leave stamps out
  std::atomic<activity> doing{activity::idle};  ///< read by the thread that grants an order word
  std::uint32_t scope_depth = 0;                ///< operations open on this thread
  label innermost_scope = 0;                    ///< name of the innermost one that the program itself named; 0: none
  bool has_exited = false;                      ///< its thread-local objects are gone
};

/// The space in which one thread records: one producer fills it from the beginning, and when it is full the producer has it
/// emptied to the end and starts again. No index ever wraps. It outlives its thread and then serves another.
struct event_ring {
  // Written by the producer.
  std::atomic<event*> head{nullptr};  ///< one past the last published event

  // Everything below is used under the registry's lock.
  alignas(64) event* tail = nullptr;  ///< first event that was not drained
  event* drain_limit = nullptr;       ///< how far the drain that is running goes
  std::uint64_t last_stamp = 0;       ///< of the last drained event that had one: the place of those without
  event* first = nullptr;
  std::uint32_t capacity = 0;
  std::uint32_t id = 0;             ///< from 1; names the thread in the ledger and in the order word
  thread_context* owner = nullptr;  ///< null between two threads
  event_ring* next = nullptr;

  /// Ids of names that this thread used lately, found by hash; only its producer reads and writes them.
  struct cached_label {
    const char* text;
    std::uint32_t size;
    label id;
  };
  static constexpr std::size_t cached_labels = 64;
  cached_label label_cache[cached_labels] = {};

  [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(event_ring) + capacity * sizeof(event); }
};

}  // namespace memprof
