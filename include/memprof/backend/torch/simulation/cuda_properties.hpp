#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

/// @file
/// What the memory of CUDA kernels depends on, of the device that a simulation claims.

namespace memprof::inline MEMPROF_ABI::detail {

struct cuda_properties {
  std::int32_t multiprocessors = 108;
  std::int16_t threads_per_multiprocessor = 2048;
  bool is_hopper_or_later = false;
};

/// Those of an A100 if the name contains no GPU that is known.
[[nodiscard]] constexpr cuda_properties cuda_properties_of(std::string_view device_name) noexcept {
  struct known_gpu {
    std::string_view name;
    cuda_properties properties;
  };
  constexpr known_gpu known[] = {
      {"24gb", {128, 1536, false}},                                // a GeForce RTX 4090
      {"4090", {128, 1536, false}}, {"141gb", {132, 2048, true}},  // an H200
      {"h100", {132, 2048, true}},  {"h200", {132, 2048, true}},  {"b100", {148, 2048, true}}, {"b200", {148, 2048, true}},
  };
  for (const known_gpu& gpu : known) {
    if (device_name.find(gpu.name) != std::string_view::npos) return gpu.properties;
  }
  return {};
}

/// Of the simulation's device. Relaxed: the program orders the beginning of the capture with its own work.
[[gnu::visibility("default")]] inline constinit std::atomic<cuda_properties> claimed_cuda{};
static_assert(std::atomic<cuda_properties>::is_always_lock_free);

}  // namespace memprof::inline MEMPROF_ABI::detail
