#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/signal_guard.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

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

/// /proc/self/status, open during a capture: a program may forbid itself to open files. Its counters take ten microseconds
/// however large the process is. /proc/self/smaps_rollup has the same sums, but looks at every page for them: 40 ms for 1 GiB.
///
/// The program may close every descriptor, as daemons do, and get the same number for a file of its own. That one is neither
/// moved nor closed, and nothing is read any more. `read` waits for nothing and may run on any thread at any time; the last one
/// closes the file if `close` came in between.
class status_file {
 public:
  static constexpr std::size_t most_bytes = 4096;  // the lines of interest are within the first 1,500

  /// One thread at a time calls this and `close`.
  void open() noexcept {
#if defined(__linux__)
    close();
    if (state_.load(std::memory_order_acquire) != 0) return;  // a thread still reads the last one
    const errno_guard kept;
    const signal_guard whole;
    number_ = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (number_ < 0) return;
    process_ = ::getpid();
    char text[most_bytes];
    process_in_file_ = process_in(text_of(text));  // another number, if /proc is that of an outer container
    is_lost_.store(process_in_file_ < 0, std::memory_order_relaxed);
    // Release pairs with the acquire in `read`.
    state_.store(is_open, std::memory_order_release);
#endif
  }

  /// The text, in `text`; empty if there is none.
  [[nodiscard]] std::string_view read(char (&text)[most_bytes]) noexcept {
    const signal_guard whole;  // a handler that leaves by `siglongjmp`, or cancellation, would leave a reader behind
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    do {
      if ((state & (is_open | is_closing)) != is_open) return {};
      // Acquire pairs with the release in `open`.
    } while (!state_.compare_exchange_weak(state, state + reader, std::memory_order_acquire, std::memory_order_relaxed));
    std::string_view found;
    if (!is_lost_.load(std::memory_order_relaxed) && ::getpid() == process_) {  // not in a child that no fork handler saw
      const errno_guard kept;
      found = text_of(text);
      if (process_in(found) != process_in_file_) {
        is_lost_.store(true, std::memory_order_relaxed);
        found = {};
      }
    }
    // Acquire and release, so that the thread that closes the file comes after all that read it.
    if (state_.fetch_sub(reader, std::memory_order_acq_rel) == (is_open | is_closing) + reader) close_now();
    return found;
  }

  void close() noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    do {
      if ((state & (is_open | is_closing)) != is_open) return;
    } while (!state_.compare_exchange_weak(state, state | is_closing, std::memory_order_acq_rel, std::memory_order_relaxed));
    if (state == is_open) close_now();
  }

  /// In the child after `fork`: its copy still reads the parent.
  void leave_to_parent() noexcept {
    if (state_.load(std::memory_order_relaxed) != 0) close_now();
  }

 private:
  static constexpr std::uint32_t is_open = 1;
  static constexpr std::uint32_t is_closing = 2;
  static constexpr std::uint32_t reader = 4;

  [[nodiscard]] static std::int64_t process_in(std::string_view status) noexcept { return status_number(status, "\nPid:"); }

  /// `pread` moves no offset, and fails where there is none, as in a pipe.
  [[nodiscard]] std::string_view text_of(char (&text)[most_bytes]) const noexcept {
    for (;;) {
      const ssize_t got = ::pread(number_, text, most_bytes, 0);
      if (got >= 0) return {text, static_cast<std::size_t>(got)};
      if (errno != EINTR) return {};
    }
  }

  void close_now() noexcept {
    const errno_guard kept;
    const signal_guard whole;
    char text[most_bytes];
    if (!is_lost_.load(std::memory_order_relaxed) && process_in(text_of(text)) == process_in_file_) ::close(number_);
    number_ = -1;
    // Release pairs with the acquire in `open`.
    state_.store(0, std::memory_order_release);
  }

  std::atomic<std::uint32_t> state_{0};  ///< 0: no file; otherwise `is_open`, `is_closing` or not, and the readers
  std::atomic<bool> is_lost_{false};     ///< the number may be that of another file
  int number_ = -1;
  std::int64_t process_ = 0;
  std::int64_t process_in_file_ = -1;
};

/// That of the active capture.
inline constinit status_file process_status{};

/// Opens the process's status for a capture, and closes it if there will be none.
class [[nodiscard]] open_status_guard {
 public:
  open_status_guard() noexcept { process_status.open(); }
  open_status_guard(const open_status_guard&) = delete;
  open_status_guard& operator=(const open_status_guard&) = delete;
  ~open_status_guard() {
    if (!is_kept_) process_status.close();
  }
  void keep() noexcept { is_kept_ = true; }

 private:
  bool is_kept_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
