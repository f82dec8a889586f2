#pragma once

#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_properties.hpp>
#include <memprof/backend/cuda/simulated_questions.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/backend/cuda/simulated_streams.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// The calls of CUDA's runtime that launch kernels, and those on streams and events, without a device: kernels are left out, and
/// what would happen later has happened at once.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

// --- streams --------------------------------------------------------------------------------------------------------------

[[nodiscard]] inline int make_stream(void** stream, unsigned flags, int priority) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (stream == nullptr) return runtime_result::invalid_value;
    *stream = handle_of(runtime.streams.make_stream(current_device(runtime), flags, priority));
    return *stream == nullptr ? runtime_result::memory_allocation : runtime_result::done;
  });
}
/// Also after the capture's end.
[[nodiscard]] inline int remove_stream(const void* stream) noexcept {
  if (process_runtime().streams.remove_stream(number_of(stream))) return ended(runtime_result::done);
  return called([](simulated_runtime&) { return runtime_result::invalid_resource_handle; });
}
[[nodiscard]] inline int synchronize_stream(const void* stream, std::uint64_t unnamed) noexcept {
  return called_on(stream, unnamed, [](simulated_runtime& runtime, const simulated_stream& on) {
    runtime.memory.synchronize_stream(on.device, on.handle);
    return runtime_result::done;
  });
}

// --- events ---------------------------------------------------------------------------------------------------------------

[[nodiscard]] inline int make_event(void** event) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (event == nullptr) return runtime_result::invalid_value;
    *event = handle_of(runtime.streams.make_event());
    return *event == nullptr ? runtime_result::memory_allocation : runtime_result::done;
  });
}
/// Also after the capture's end.
[[nodiscard]] inline int remove_event(const void* event) noexcept {
  if (process_runtime().streams.remove_event(number_of(event))) return ended(runtime_result::done);
  return called([](simulated_runtime&) { return runtime_result::invalid_resource_handle; });
}
/// A call that only asks for an event.
[[nodiscard]] inline int of_event(const void* event) noexcept {
  return called([&](simulated_runtime& runtime) {
    return runtime.streams.has_event(number_of(event)) ? runtime_result::done : runtime_result::invalid_resource_handle;
  });
}
[[nodiscard]] inline int record_event_on(const void* event, const void* stream, std::uint64_t unnamed) noexcept {
  return called_on(stream, unnamed, [&](simulated_runtime& runtime, const simulated_stream&) {
    return runtime.streams.record_event(number_of(event)) ? runtime_result::done : runtime_result::invalid_resource_handle;
  });
}
[[nodiscard]] inline int wait_for_event(const void* stream, std::uint64_t unnamed, const void* event) noexcept {
  return called_on(stream, unnamed, [&](simulated_runtime& runtime, const simulated_stream&) {
    return runtime.streams.has_event(number_of(event)) ? runtime_result::done : runtime_result::invalid_resource_handle;
  });
}
/// The host's time, so that programs which wait for some to pass go on.
[[nodiscard]] inline int elapsed(float* milliseconds, const void* from, const void* to) noexcept {
  return called([&](simulated_runtime& runtime) {
    const std::int64_t begin_ns = runtime.streams.recorded_ns(number_of(from));
    const std::int64_t end_ns = runtime.streams.recorded_ns(number_of(to));
    if (begin_ns == 0 || end_ns == 0) return runtime_result::invalid_resource_handle;
    constexpr float ns_in_ms = 1'000'000;
    return put(milliseconds, static_cast<float>(end_ns - begin_ns) / ns_in_ms);
  });
}

// --- kernels --------------------------------------------------------------------------------------------------------------

/// A kernel is left out, unless a device would refuse it.
[[nodiscard]] inline int launch(const launch_shape& grid, const launch_shape& block, const void* stream,
                                std::uint64_t unnamed) noexcept {
  return called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream&) {
    const bool is_grid = grid.x != 0 && grid.y != 0 && grid.z != 0;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    return is_grid && threads != 0 && threads <= greatest_block ? runtime_result::done : runtime_result::invalid_configuration;
  });
}

/// What `<<<>>>` says, until the kernel's stub asks for it. False if arguments of launches launch too deeply.
[[nodiscard]] inline bool push_launch(const runtime_thread::configured_launch& launched) noexcept {
  runtime_thread& self = this_runtime_thread;
  if (self.launch_count == self.launches.size()) return false;
  self.launches[self.launch_count++] = launched;
  return true;
}
/// `stream` is where its handle goes.
[[nodiscard]] inline int pop_launch(launch_shape* grid, launch_shape* block, std::size_t* shared_bytes, void* stream) noexcept {
  runtime_thread& self = this_runtime_thread;
  if (self.launch_count == 0) return ended(runtime_result::invalid_configuration);
  const runtime_thread::configured_launch& launched = self.launches[--self.launch_count];
  *grid = launched.grid;
  *block = launched.block;
  *shared_bytes = launched.shared_bytes;
  std::memcpy(stream, &launched.stream, sizeof launched.stream);
  return static_cast<int>(runtime_result::done);
}

/// A kernel is known by the function that stands for it, also where there is no device: a program asks only once.
[[nodiscard]] inline int know_kernel(void** kernel, const void* function) noexcept {
  return ended(put(kernel, const_cast<void*>(function)));
}

[[nodiscard]] inline int describe_function(function_attributes* found) noexcept {
  return called([&](simulated_runtime& runtime) {
    function_attributes of{};
    constexpr int registers = 32;
    constexpr int tens = 10;
    of.threads_per_block = greatest_block;
    of.registers = registers;
    of.ptx_version = of.binary_version = tens * runtime.gpu().major() + runtime.gpu().minor();
    of.dynamic_shared_bytes = default_shared_bytes;
    return put(found, of);
  });
}

[[nodiscard]] inline int active_blocks(int* blocks, int threads, std::size_t shared_bytes) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (threads <= 0) return runtime_result::invalid_value;
    return put(blocks, blocks_on_multiprocessor(runtime.gpu(), threads, shared_bytes));
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
