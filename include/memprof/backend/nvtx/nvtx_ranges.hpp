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
#include <string_view>

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
    if (!open_.push_back({domain, {}})) return -1;
    open_.back().range = ranged_operation::begin(name);
    return depth_of(domain) - 1;
  }
  /// Returns the number of ranges around the one that has ended; -1 if there was none.
  int pop(domain_handle domain) noexcept {
    for (std::size_t index = open_.size(); index-- != 0;) {
      if (open_[index].domain != domain) continue;
      open_[index].range.end();
      open_.erase(index);
      return depth_of(domain);
    }
    return -1;
  }

 private:
  struct open_range {
    domain_handle domain;
    ranged_operation range;
  };

  [[nodiscard]] int depth_of(domain_handle domain) const noexcept {
    int depth = 0;
    for (std::size_t index = 0; index != open_.size(); ++index) depth += open_[index].domain == domain ? 1 : 0;
    return depth;
  }

  page_array<open_range> open_;
};

/// A thread's own object, from its first use to its end.
struct thread_ranges_slot {
  thread_ranges* ranges = nullptr;
  bool has_ended = false;
};
inline constinit thread_local thread_ranges_slot this_thread_ranges{};

struct thread_ranges_exit {
  thread_ranges ranges;

  thread_ranges_exit() { this_thread_ranges.ranges = &ranges; }
  thread_ranges_exit(const thread_ranges_exit&) = delete;
  thread_ranges_exit& operator=(const thread_ranges_exit&) = delete;
  ~thread_ranges_exit() { this_thread_ranges = {nullptr, true}; }
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
