#pragma once

#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/handler_watch.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/status_file.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

/// @file
/// What the system and `malloc` say about the process, and how often a capture may ask them.

namespace memprof::inline MEMPROF_ABI::detail {

/// Bytes; -1: unknown.
struct process_reading {
  std::int64_t resident = -1;
  std::int64_t peak_resident = -1;
  std::int64_t anonymous = -1;
  std::int64_t swapped = -1;
  std::int64_t heap = -1;
  std::int64_t free_heap = -1;
  std::int64_t threads = 1;  ///< a number; -1: unknown

  [[nodiscard]] bool is_there() const noexcept { return resident >= 0 || heap >= 0; }
};

/// The value of a line "\nVmRSS:\t    2976 kB" of /proc/self/status in bytes; -1 if there is none.
[[nodiscard]] inline std::int64_t status_bytes(std::string_view status, std::string_view key) noexcept {
  const std::int64_t kibibytes = status_number(status, key);
  return kibibytes < 0 ? -1 : kibibytes * 1024;
}

[[nodiscard]] inline process_reading reading_of_status(std::string_view status) noexcept {
  return {status_bytes(status, "\nVmRSS:"),
          status_bytes(status, "\nVmHWM:"),
          status_bytes(status, "\nRssAnon:"),
          status_bytes(status, "\nVmSwap:"),
          -1,
          -1,
          status_number(status, "\nThreads:")};
}

/// The session's thread, which takes no signals; 0: there is none.
inline constinit std::atomic<std::uint64_t> thread_without_handlers{0};

/// Whether this thread may wait for the locks of `malloc`. One in a signal handler must not, as it may have interrupted `malloc`;
/// neither may one that forks.
[[nodiscard]] inline bool may_wait_for_malloc() noexcept {
  if (registry_guard::is_forking(abi_1::process_registry)) return false;
  const std::uint64_t session = thread_without_handlers.load(std::memory_order_relaxed);
  return (session != 0 && session == thread_id()) || !process_handlers.may_be_in_handler();
}

/// Asks `malloc` for the sums over all its arenas. It holds an arena's lock while it walks through the free blocks there, some 20
/// to 50 ns each, meanwhile without signals: a handler that leaves by `siglongjmp` would leave it locked. Never under a lock of
/// the profiler, for which a signal handler may wait that interrupted `malloc`.
inline void add_heap([[maybe_unused]] process_reading& reading) noexcept {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
  const signal_guard whole;
  const struct mallinfo2 found = ::mallinfo2();
  reading.heap = static_cast<std::int64_t>(found.uordblks + found.hblkhd);
  reading.free_heap = static_cast<std::int64_t>(found.fordblks);
#endif
#endif
}

/// Whether a sanitizer keeps memory of its own about each byte, which says nothing about the program's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool has_shadow_memory = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool has_shadow_memory = true;
#else
inline constexpr bool has_shadow_memory = false;
#endif
#else
inline constexpr bool has_shadow_memory = false;
#endif

/// Decides when a capture reads again: at most a thousandth of its time goes into readings, after an allowance that covers each
/// snapshot of a short run. Two threads never read at the same time.
class reading_schedule {
 public:
  void restart(std::int64_t now_ns) noexcept {
    begin_ns_.store(now_ns, std::memory_order_relaxed);
    spent_ns_.store(0, std::memory_order_relaxed);
    due_ns_.store(now_ns, std::memory_order_release);
  }

  /// True if a reading is due; then call `finish`.
  [[nodiscard]] bool claim(std::int64_t now_ns) noexcept {
    std::int64_t due_ns = due_ns_.load(std::memory_order_relaxed);
    // Acquire pairs with the release in `finish` and `restart`.
    return now_ns >= due_ns && due_ns_.compare_exchange_strong(due_ns, never, std::memory_order_acquire);
  }
  void finish(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const std::int64_t spent_ns = spent_ns_.load(std::memory_order_relaxed) + (end_ns - begin_ns);
    spent_ns_.store(spent_ns, std::memory_order_relaxed);
    const std::int64_t over_ns = spent_ns - allowance_ns - (end_ns - begin_ns_.load(std::memory_order_relaxed)) / share;
    // Release pairs with the acquire in `claim`.
    due_ns_.store(over_ns > 0 ? end_ns + over_ns * share : end_ns, std::memory_order_release);
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t share = 1000;
  static constexpr std::int64_t allowance_ns = 5'000'000;

  std::atomic<std::int64_t> due_ns_{never};
  std::atomic<std::int64_t> begin_ns_{0};
  std::atomic<std::int64_t> spent_ns_{0};
};

/// That of the active capture.
inline constinit reading_schedule process_schedule{};

/// Decides when `malloc` may be asked: for at most a thousandth of the time since the process first asked it, after an allowance.
/// Unlike that of readings, it goes on from capture to capture: a program may begin thousands, and each asks twice.
class heap_schedule {
 public:
  [[nodiscard]] bool is_due(std::int64_t now_ns) const noexcept { return now_ns >= due_ns_.load(std::memory_order_relaxed); }

  void note(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    std::int64_t first_ns = never;
    if (first_ns_.compare_exchange_strong(first_ns, begin_ns, std::memory_order_relaxed)) first_ns = begin_ns;
    const std::int64_t cost_ns = end_ns - begin_ns;
    const std::int64_t over_ns = spent_ns_.fetch_add(cost_ns, std::memory_order_relaxed) + cost_ns - allowance_ns;
    due_ns_.store(over_ns > 0 ? first_ns + over_ns * share : end_ns, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t share = 1000;
  static constexpr std::int64_t allowance_ns = 5'000'000;

  std::atomic<std::int64_t> due_ns_{0};
  std::atomic<std::int64_t> first_ns_{never};
  std::atomic<std::int64_t> spent_ns_{0};
};

inline constinit heap_schedule process_heap_schedule{};

/// Who reads.
enum class reading_by : std::uint8_t {
  snapshot,        ///< perhaps in a signal handler
  allocating_call  ///< in no handler that interrupted `malloc`, or the call's own allocations would wait there for ever
};

/// Reads what is known about the process. Without any lock of the profiler. With `must_have_heap`, `malloc` is asked whatever
/// that has cost until now.
[[nodiscard]] inline process_reading read_process(reading_by who, bool must_have_heap = false) noexcept {
  char text[status_file::most_bytes];
  process_reading reading = reading_of_status(process_status.read(text));  // nothing if the program has closed the file
  if constexpr (has_shadow_memory) reading.anonymous = -1;
  const std::int64_t begin_ns = monotonic_ns();
  if (!must_have_heap && !process_heap_schedule.is_due(begin_ns)) return reading;
  if (who == reading_by::snapshot ? !may_wait_for_malloc() : registry_guard::is_forking(abi_1::process_registry)) return reading;
  add_heap(reading);
  process_heap_schedule.note(begin_ns, monotonic_ns());
  return reading;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
