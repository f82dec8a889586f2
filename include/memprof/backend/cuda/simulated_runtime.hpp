#pragma once

#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_memory.hpp>
#include <memprof/backend/cuda/simulated_properties.hpp>
#include <memprof/backend/cuda/simulated_streams.hpp>
#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/phantom_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/device_description.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// What stands behind the calls of CUDA's runtime where there is no device.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// The variables of the program's device code: the host knows each by the address of a variable of its own.
class device_variables {
 public:
  void add(const void* host, std::uint64_t bytes) noexcept {
    const lock_guard guard{lock_};
    const live_blocks::insertion made = table_.insert(reinterpret_cast<std::uintptr_t>(host));
    if (made.entry != nullptr) made.entry->bytes = bytes;
  }
  /// False if there is none.
  [[nodiscard]] bool find(const void* host, std::uint64_t& bytes) noexcept {
    const lock_guard guard{lock_};
    const block* const found = table_.at(reinterpret_cast<std::uintptr_t>(host));
    if (found != nullptr) bytes = found->bytes;
    return found != nullptr;
  }
  /// Its address on the device; null if there is none, or no address is left.
  [[nodiscard]] void* address_of(const void* host) noexcept {
    const lock_guard guard{lock_};
    const live_blocks::place found = table_.find(reinterpret_cast<std::uintptr_t>(host));
    if (!found) return nullptr;
    constexpr std::size_t alignment = 256;
    if (found->owner == 0) found->owner = reinterpret_cast<std::uintptr_t>(take_phantom(found->bytes, alignment));
    return reinterpret_cast<void*>(found->owner);
  }

 private:
  futex_lock lock_;
  live_blocks table_;
};

/// The devices of a process, which are there while a capture is active that has them.
class simulated_runtime {
 public:
  void begin(const device_description& described) noexcept {
    memory.begin(described);
    gpu_ = {described.name, cuda_properties_of(described.name.view())};
    if (described.empty()) gpu_.name = "simulated";
    // Relaxed, as in `end`: a call that overlaps the capture's begin or end may belong to it or not.
    capture_.store(event_sink{}.capture(), std::memory_order_relaxed);
  }
  void end() noexcept { capture_.store(0, std::memory_order_relaxed); }

  /// Not in a child after `fork`, which has no capture.
  [[nodiscard]] bool has_devices() const noexcept {
    const std::uint32_t capture = capture_.load(std::memory_order_relaxed);
    return capture != 0 && capture == event_sink{}.capture();
  }
  [[nodiscard]] const simulated_gpu& gpu() const noexcept { return gpu_; }

  simulated_memory memory;
  simulated_streams streams;
  device_variables variables;
  std::array<std::atomic<std::size_t>, 7> limits{1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};  ///< by `cudaLimit`, as at the start

 private:
  std::atomic<std::uint32_t> capture_{0};
  simulated_gpu gpu_;
};

/// It lives as long as the process, since the program may free while that exits.
[[nodiscard]] inline simulated_runtime& process_runtime() {
  const recording_suppressor hidden;
  static auto* const made = new simulated_runtime;
  return *made;
}

/// What the runtime knows of a thread.
struct runtime_thread {
  /// Launches between their configuration and the kernel's stub: arguments may launch, too.
  struct configured_launch {
    launch_shape grid;
    launch_shape block;
    std::size_t shared_bytes;
    void* stream;
  };

  std::uint32_t device = 0;
  runtime_result last = runtime_result::done;
  std::array<configured_launch, 8> launches{};
  std::size_t launch_count = 0;
};
inline constinit thread_local runtime_thread this_runtime_thread{};

/// The result of a call, which `cudaGetLastError` also says.
[[nodiscard]] inline int ended(runtime_result result) noexcept {
  if (result != runtime_result::done) this_runtime_thread.last = result;
  return static_cast<int>(result);
}

/// A call that needs a device.
template <class Work>
[[nodiscard]] int called(Work&& work) noexcept {
  simulated_runtime& runtime = process_runtime();
  return ended(runtime.has_devices() ? work(runtime) : runtime_result::no_device);
}

[[nodiscard]] inline std::uint32_t current_device(simulated_runtime& runtime) noexcept {
  const std::uint32_t chosen = this_runtime_thread.device;
  return chosen < runtime.memory.device_count() ? chosen : 0;  // it may have been chosen in a capture with more
}

[[nodiscard]] inline std::uint64_t number_of(const void* handle) noexcept { return reinterpret_cast<std::uintptr_t>(handle); }
[[nodiscard]] inline void* handle_of(std::uint64_t handle) noexcept { return reinterpret_cast<void*>(handle); }

/// A stream as a call names it. `unnamed` is what the null stream means to the caller.
[[nodiscard]] inline runtime_result find_stream(simulated_runtime& runtime, const void* handle, std::uint64_t unnamed,
                                                simulated_stream& found) noexcept {
  const std::uint64_t named = handle == nullptr ? unnamed : number_of(handle);
  if (named <= per_thread_stream) {
    found = {named, current_device(runtime), 0, 0};
    return runtime_result::done;
  }
  found = runtime.streams.stream(named);
  return found.handle == 0 ? runtime_result::invalid_resource_handle : runtime_result::done;
}

/// Calls `work(runtime, stream)`, if the stream is known.
template <class Work>
[[nodiscard]] int called_on(const void* handle, std::uint64_t unnamed, Work&& work) noexcept {
  return called([&](simulated_runtime& runtime) {
    simulated_stream stream;
    const runtime_result found = find_stream(runtime, handle, unnamed, stream);
    return found == runtime_result::done ? work(runtime, stream) : found;
  });
}

/// Calls `work(runtime, device)`, if there is such a device.
template <class Work>
[[nodiscard]] int called_of(int device, Work&& work) noexcept {
  return called([&](simulated_runtime& runtime) {
    const bool is_known = device >= 0 && static_cast<std::uint32_t>(device) < runtime.memory.device_count();
    return is_known ? work(runtime, static_cast<std::uint32_t>(device)) : runtime_result::invalid_device;
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
