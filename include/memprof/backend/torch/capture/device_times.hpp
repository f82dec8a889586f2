#pragma once

#include <memprof/backend/torch/capture/operator_table.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/recorder.hpp>

#include <torch/csrc/profiler/stubs/base.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

/// @file
/// How long operators take on a CUDA device, measured through the functions that libtorch's CUDA library registers for its own
/// profiler. Needs no CUDA headers; without that library there are no times.

namespace memprof::inline MEMPROF_ABI::detail {

using device_event = torch::profiler::impl::ProfilerVoidEventStub;

/// Records an event in the current stream before and after each call, and queries the times between them only for a profile: a
/// query waits for the device, and would abort the capture of a CUDA graph.
class device_times {
 public:
  /// The maximum number of calls whose times are pending; further calls are not timed.
  static constexpr std::size_t max_waiting = std::size_t{1} << 18;

  /// Forgets the pending calls of earlier captures.
  void begin_capture() {
    const recording_suppressor hidden;
    std::vector<call> forgotten;
    const lock_guard lock{lock_};
    forgotten.swap(waiting_);
    left_out_ = 0;
  }

  void begin() noexcept { is_on_.store(torch::profiler::impl::cudaStubs()->enabled(), std::memory_order_relaxed); }

  /// An event after all work queued on the stream so far; none if there is no device.
  [[nodiscard]] device_event mark() noexcept {
    if (!is_on_.load(std::memory_order_relaxed)) return {};
    try {
      device_event event;
      torch::profiler::impl::cudaStubs()->record(nullptr, &event, nullptr);
      return event;
    } catch (const std::exception&) {  // a CUDA build without a device
      is_on_.store(false, std::memory_order_relaxed);
      return {};
    }
  }

  /// Keeps a call that has ended; `before` is the result of `mark` when it began.
  void add(std::uint32_t capture, const operator_key& key, device_event before) {
    if (before == nullptr) return;
    device_event after = mark();
    if (after == nullptr) return;
    const recording_suppressor hidden;
    const lock_guard lock{lock_};
    if (waiting_.size() == max_waiting) {
      ++left_out_;
      return;
    }
    waiting_.push_back({capture, key, std::move(before), std::move(after)});
  }

  /// Adds the times of all calls so far to the table. Waits for the device.
  void tell(operator_table& table) {
    const recording_suppressor hidden;
    std::vector<call> ended;
    std::int64_t left_out = 0;
    {
      const lock_guard lock{lock_};
      ended.swap(waiting_);
      std::swap(left_out, left_out_);
    }
    for (const call& one : ended) {
      try {
        constexpr double ns_per_us = 1000;
        const double us = torch::profiler::impl::cudaStubs()->elapsed(&one.before, &one.after);
        table.add_device_time(one.capture, one.key, static_cast<std::int64_t>(us * ns_per_us));
      } catch (const std::exception&) {  // an event recorded into a CUDA graph never occurred itself
        ++left_out;
      }
    }
    table.add_untimed(left_out);
  }

 private:
  struct call {
    std::uint32_t capture;
    operator_key key;
    device_event before;
    device_event after;
  };

  futex_lock lock_;
  std::atomic<bool> is_on_{false};
  std::vector<call> waiting_;
  std::int64_t left_out_ = 0;
};

/// Never destroyed: operators may end as late as the process does.
[[nodiscard]] inline device_times& process_device_times() {
  const recording_suppressor hidden;
  static auto* const times = new device_times;
  return *times;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
