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
/// How long operators take on a CUDA device, through the functions that libtorch's CUDA library registers for its own profiler:
/// no header of CUDA is needed, and without that library there are no times.

namespace memprof::inline MEMPROF_ABI::detail {

using device_event = torch::profiler::impl::ProfilerVoidEventStub;

/// Puts an event into the current stream before and after each call, and asks for the times between them when a profile wants
/// them. Not earlier: asking waits for the device, and while a program captures a CUDA graph it would end that.
class device_times {
 public:
  /// Calls whose times nobody has asked for yet; those of further ones are not taken.
  static constexpr std::size_t max_waiting = std::size_t{1} << 18;

  /// Forgets the calls of earlier captures, which nobody asked for.
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

  /// Keeps a call that has ended; `before` is what `mark` returned when it began.
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
      } catch (const std::exception&) {  // an event of a CUDA graph that was captured never happened
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

/// Never destroyed: operators may end until the process does.
[[nodiscard]] inline device_times& process_device_times() {
  const recording_suppressor hidden;
  static auto* const times = new device_times;
  return *times;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
