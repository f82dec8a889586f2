#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/device_presets.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

/// @file
/// What a process takes of a CUDA device besides its blocks.

namespace memprof::inline MEMPROF_ABI {

/// The memory of a CUDA device that a process holds besides what its allocator takes: the context, and the kernels and libraries
/// that are loaded when they are first used. In bytes. It depends on the device, the driver and the libraries, so it is an
/// interval around what is expected.
struct cuda_context {
  std::int64_t least = 0;
  std::int64_t expected = 0;
  std::int64_t most = 0;
  std::string_view source;  ///< who measured it where; empty: the device is no CUDA device, or the user said it

  bool operator==(const cuda_context&) const = default;
};

namespace detail {

struct known_cuda_context {
  std::string_view preset;
  cuda_context context;
};

/// Of a device of which nothing is known: the extremes and the median of what is known of others. The least is that of an RTX A4000
/// with 16 GB, the most that of a V100.
inline constexpr cuda_context unknown_cuda_context{
    std::int64_t{210} << 20, std::int64_t{430} << 20, std::int64_t{1'343} << 20,
    "no measurement of this device: the least, median and greatest of others"};

/// Measured values, by preset. docs/fit_parts.md has them one by one. The sizes in PyTorch's messages have two decimals of a GiB.
inline constexpr std::array<known_cuda_context, 4> known_cuda_contexts{{
    {"gpu-24gb",
     {std::int64_t{379} << 20, std::int64_t{471} << 20, std::int64_t{563} << 20,
      "published out-of-memory messages of PyTorch on RTX 4090"}},
    {"gpu-40gb",
     {std::int64_t{492} << 20, std::int64_t{512} << 20, std::int64_t{1'024} << 20,
      "published out-of-memory messages of PyTorch on A100"}},
    {"gpu-80gb",
     {std::int64_t{492} << 20, std::int64_t{512} << 20, std::int64_t{1'024} << 20,
      "published out-of-memory messages of PyTorch on A100"}},
    {"gpu-141gb",
     {648'871'936, 804'061'184, 804'061'184, "measured on an H200 with driver 580.159.04 and torch 2.11.0+cu130"}},
}};

}  // namespace detail

/// What a process that trains with PyTorch holds of the device besides its allocator's memory; nothing if that is no CUDA device.
/// A preset's value is that of the card it stands for, if the capacity is the preset's, too; never more than the capacity.
[[nodiscard]] inline cuda_context cuda_context_of(const device_description& device) {
  const device_space* space = nullptr;
  for (std::size_t index = 0; index < device.space_count && space == nullptr; ++index) {
    if (device.spaces[index].name.view().starts_with("cuda")) space = &device.spaces[index];
  }
  if (space == nullptr) return {};
  cuda_context found = detail::unknown_cuda_context;
  for (const detail::known_cuda_context& known : detail::known_cuda_contexts) {
    if (known.preset != device.name.view()) continue;
    if (space->capacity == device_preset(known.preset).tensor_space().capacity) found = known.context;
  }
  if (space->capacity == 0) return found;
  found.most = std::min(found.most, space->capacity);
  found.expected = std::min(found.expected, space->capacity);
  found.least = std::min(found.least, space->capacity);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
