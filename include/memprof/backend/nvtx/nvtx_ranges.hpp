#pragma once

#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/backend/nvtx/nvtx_text.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

/// @file
/// NVTX's ranges as operations. Knows nothing of how NVTX calls.

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

/// Whether the active capture records ranges.
inline constinit std::atomic<bool> are_ranges_recorded{false};

/// A range as an operation of a capture; `capture` 0: it is none.
struct ranged_operation {
  open_operation operation{};
  std::uint32_t capture = 0;

  [[nodiscard]] static ranged_operation begin(std::string_view name) noexcept {
    // Relaxed: a range that overlaps the capture's begin or end may belong to it or not.
    const std::uint32_t capture = event_sink{}.capture();
    if (capture == 0 || !are_ranges_recorded.load(std::memory_order_relaxed) || !event_sink{}.is_thread_recordable()) return {};
    const label text = event_sink{}.label_of(name);
    ranged_operation begun{event_sink{}.begin_operation(text, {}), capture};
    event_sink{}.set_innermost_name(text);
    return begun;
  }
  void end() const noexcept {
    if (capture != 0) event_sink{}.end_operation(operation, capture);
  }
};

/// The ranges that are open on a thread by push and pop. Each domain has a stack of its own.
class thread_ranges {
 public:
  /// Returns the number of ranges of that domain around the new one, as NVTX does; -1 if the system has no memory.
  int push(domain_handle domain, std::string_view name) noexcept {
    const std::size_t outer = innermost_of(domain);
    const int depth = outer == none ? 0 : open_[outer].depth + 1;
    if (!open_.push_back({domain, depth, {}})) return -1;
    open_.back().range = ranged_operation::begin(name);
    return depth;
  }
  /// Returns the number of ranges around the one that has ended; -1 if there was none.
  int pop(domain_handle domain) noexcept {
    const std::size_t innermost = innermost_of(domain);
    if (innermost == none) return -1;
    const open_range ended = open_[innermost];
    ended.range.end();
    open_.erase(innermost);
    return ended.depth;
  }

 private:
  struct open_range {
    domain_handle domain;
    int depth;  ///< in its domain, from 0
    ranged_operation range;
  };

  static constexpr std::size_t none = ~std::size_t{0};
  [[nodiscard]] std::size_t innermost_of(domain_handle domain) const noexcept {
    std::size_t index = open_.size();
    while (index != 0 && open_[index - 1].domain != domain) --index;
    return index - 1;
  }

  page_array<open_range> open_;
};

/// A thread's own object, from its first use to its end.
struct thread_ranges_slot {
  thread_ranges* ranges = nullptr;
  bool has_ended = false;
};
inline constinit thread_local thread_ranges_slot this_thread_ranges{};

[[nodiscard]] inline bool is_main_thread() noexcept {
#if defined(__linux__)
  return ::syscall(SYS_gettid) == ::getpid();
#else
  return false;
#endif
}

/// Of the main thread, which ends the process, ranges go on: functions for `atexit` and static destructors still come.
struct thread_ranges_exit {
  thread_ranges_exit() {
    const recording_suppressor hidden;
    this_thread_ranges.ranges = new (std::nothrow) thread_ranges;
  }
  thread_ranges_exit(const thread_ranges_exit&) = delete;
  thread_ranges_exit& operator=(const thread_ranges_exit&) = delete;
  ~thread_ranges_exit() {
    if (is_main_thread()) return;
    const recording_suppressor hidden;
    delete this_thread_ranges.ranges;
    this_thread_ranges = {nullptr, true};
  }
};

/// Null if the thread is about to end.
[[nodiscard]] inline thread_ranges* ranges_of_this_thread() noexcept {
  if (this_thread_ranges.ranges == nullptr && !this_thread_ranges.has_ended) {
    thread_local thread_ranges_exit own;
    (void)own;
  }
  return this_thread_ranges.ranges;
}

/// The ranges that were begun by start and may end on another thread: each is an operation of the thread that started it.
class started_ranges {
 public:
  /// Returns the range's number, from 1.
  [[nodiscard]] std::uint64_t start(std::string_view name) noexcept {
    const ranged_operation begun = ranged_operation::begin(name);
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    const std::uint64_t number = ++last_;
    if (begun.capture != 0 && !open_.push_back({number, begun})) begun.end();
    return number;
  }
  void end(std::uint64_t number) noexcept {
    ranged_operation ended{};
    {
      const recording_suppressor hidden;
      const lock_guard guard{lock_};
      for (started& each : open_) {
        if (each.number != number) continue;
        ended = each.range;
        each = open_[open_.size() - 1];
        open_.pop_back();
        break;
      }
    }
    ended.end();
  }

 private:
  struct started {
    std::uint64_t number;
    ranged_operation range;
  };

  futex_lock lock_;
  page_array<started> open_;
  std::uint64_t last_ = 0;
};

/// Lives as long as the process.
[[nodiscard]] inline started_ranges& process_started_ranges() {
  const recording_suppressor hidden;
  static auto* const made = new started_ranges;
  return *made;
}

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
