#pragma once

#include <memprof/record/clock.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>
#endif
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
  std::int64_t threads = 1;  ///< a number

  [[nodiscard]] bool is_there() const noexcept { return resident >= 0; }
};

/// The number in a line "\nThreads:\t3" of /proc/self/status; -1 if there is none.
[[nodiscard]] inline std::int64_t status_number(std::string_view status, std::string_view key) noexcept {
  std::size_t at = status.find(key);
  if (at == std::string_view::npos) return -1;
  at += key.size();
  while (at < status.size() && (status[at] == ' ' || status[at] == '\t')) ++at;
  std::int64_t number = -1;
  for (; at < status.size() && status[at] >= '0' && status[at] <= '9'; ++at) {
    const std::int64_t so_far = number < 0 ? 0 : number;
    if (so_far > (std::int64_t{1} << 48)) return -1;
    number = so_far * 10 + (status[at] - '0');
  }
  return number;
}

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

/// Reads /proc/self/status, whose counters take ten microseconds however large the process is. /proc/self/smaps_rollup has the
/// same sums, but looks at every page for them: 40 ms for 1 GiB.
[[nodiscard]] inline process_reading read_process_status() noexcept {
#if defined(__linux__)
  const errno_guard kept;
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[4096];  // the lines of interest are within the first 1,500 bytes
  std::size_t size = 0;
  while (size < sizeof text) {
    const ssize_t got = ::read(file, text + size, sizeof text - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  ::close(file);
  return reading_of_status({text, size});
#else
  return {};
#endif
}

/// The session's thread, which takes no signals; 0: there is none.
inline constinit std::atomic<std::uint64_t> thread_without_handlers{0};

/// Whether this thread may wait for the locks of `malloc`. One in a signal handler must not, as it may have interrupted `malloc`;
/// a handler runs with its signal blocked, so a thread that blocks none is in no handler. Neither may one that forks.
[[nodiscard]] inline bool may_wait_for_malloc() noexcept {
  if (registry_guard::is_forking(abi_1::process_registry)) return false;
  if (const std::uint64_t session = thread_without_handlers.load(std::memory_order_relaxed);
      session != 0 && session == thread_id()) {
    return true;
  }
  sigset_t blocked;
  if (::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0) return false;
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&blocked, number) == 1) return false;
  }
  return true;
}

/// Asks `malloc` for the sums over all its arenas. It holds an arena's lock while it walks through the free blocks there, some 20
/// to 50 ns each. Never under a lock of the profiler, for which a signal handler may wait that interrupted `malloc`.
inline void add_heap([[maybe_unused]] process_reading& reading) noexcept {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 found = ::mallinfo2();
  reading.heap = static_cast<std::int64_t>(found.uordblks + found.hblkhd);
  reading.free_heap = static_cast<std::int64_t>(found.fordblks);
#endif
#endif
}

/// Decides when a capture reads again: at most a thousandth of its time goes into readings, after an allowance that covers each
/// snapshot of a short run. Two threads never read at the same time.
class reading_schedule {
 public:
  void restart(std::int64_t now_ns) noexcept {
    begin_ns_.store(now_ns, std::memory_order_relaxed);
    spent_ns_.store(0, std::memory_order_relaxed);
    heap_due_ns_.store(now_ns, std::memory_order_relaxed);
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

  /// Whether `malloc` may be asked; a call that took long is not repeated for a thousand times as long.
  [[nodiscard]] bool is_heap_due(std::int64_t now_ns) const noexcept {
    return now_ns >= heap_due_ns_.load(std::memory_order_relaxed);
  }
  void note_heap(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const std::int64_t cost_ns = end_ns - begin_ns;
    heap_due_ns_.store(cost_ns > longest_ns ? end_ns + cost_ns * share : end_ns, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t share = 1000;
  static constexpr std::int64_t allowance_ns = 5'000'000;
  static constexpr std::int64_t longest_ns = 1'000'000;  ///< of a call that may be repeated at any time

  std::atomic<std::int64_t> due_ns_{never};
  std::atomic<std::int64_t> heap_due_ns_{0};
  std::atomic<std::int64_t> begin_ns_{0};
  std::atomic<std::int64_t> spent_ns_{0};
};

/// That of the active capture.
inline constinit reading_schedule process_schedule{};

/// When `malloc` is asked, provided that this thread may wait for it.
enum class heap_reading : std::uint8_t { if_cheap, always };

/// Reads what is known about the process. Without any lock of the profiler.
[[nodiscard]] inline process_reading read_process(heap_reading heap) noexcept {
  process_reading reading = read_process_status();
  if (!reading.is_there()) return reading;
  const std::int64_t begin_ns = monotonic_ns();
  if ((heap == heap_reading::if_cheap && !process_schedule.is_heap_due(begin_ns)) || !may_wait_for_malloc()) return reading;
  add_heap(reading);
  process_schedule.note_heap(begin_ns, monotonic_ns());
  return reading;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
