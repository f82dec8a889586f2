#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/device_presets.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// What a process takes of a CUDA device besides its allocator's memory.

namespace memprof::inline MEMPROF_ABI {

/// The memory of a CUDA device that a process with PyTorch holds besides what its allocator takes: the context, and the kernels
/// and libraries that are loaded when they are first used. In bytes. It depends on the device, the driver and the libraries: what
/// was measured is listed in docs/predicted_memory.md.
struct cuda_context {
  std::int64_t bytes = 0;   ///< the most that was measured
  std::int64_t least = 0;   ///< the least that was measured
  std::string_view source;  ///< who measured it where; empty: nothing is known of the device

  [[nodiscard]] constexpr bool is_known() const noexcept { return !source.empty(); }

  bool operator==(const cuda_context&) const = default;
};

namespace detail {

/// A preset, and what was measured on the card that it stands for.
struct measured_context {
  std::string_view preset;
  cuda_context context;
};

inline constexpr measured_context measured_contexts[] = {
    {"gpu-24gb", {std::int64_t{504} << 20, std::int64_t{473} << 20, "3 published out-of-memory messages, RTX 4090"}},
    {"gpu-40gb",
     {std::int64_t{1'669} << 20, std::int64_t{498} << 20,
      "nvidia-smi beside 2,047 trainings of timm; least: 2 published out-of-memory messages, A100 40 GB"}},
    {"gpu-80gb", {std::int64_t{1'433} << 20, std::int64_t{409} << 20, "3 published out-of-memory messages, A100 80 GB"}},
    {"gpu-141gb",
     {804'061'184, 648'871'936, "cudaMemGetInfo on an H200, driver 580.159.04, torch 2.11.0+cu130; least: without libraries"}},
};

}  // namespace detail

/// What is known of the device with that name and capacity. A preset's value is that of the card it stands for, as long as the
/// capacity is the preset's.
[[nodiscard]] inline cuda_context cuda_context_of(std::string_view device, std::int64_t capacity) {
  for (const detail::measured_context& measured : detail::measured_contexts) {
    if (device != measured.preset) continue;
    if (capacity == device_preset(measured.preset).tensor_space().capacity) return measured.context;
  }
  return {};
}

/// The same of a device; nothing of one without memory spaces.
[[nodiscard]] inline cuda_context cuda_context_of(const device_description& device) {
  return device.space_count == 0 ? cuda_context{} : cuda_context_of(device.name.view(), device.tensor_space().capacity);
}

}  // namespace memprof::inline MEMPROF_ABI
