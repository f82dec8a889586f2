#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/device_description.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

/// @file
/// The sizes of the workspaces that PyTorch gives to cuBLAS and cuBLASLt (aten/src/ATen/cuda/CUDABlas.cpp, CublasHandlePool.cpp).

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes of a setting like ":4096:2:16:8": two blocks of 4096 KiB and eight of 16 KiB. 0 if it is not valid.
[[nodiscard]] constexpr std::int64_t cublas_workspace_bytes(std::string_view setting) noexcept {
  std::int64_t total = 0;
  std::int64_t block = 0;
  std::size_t fields = 0;
  for (std::size_t position = 0; position < setting.size();) {
    if (setting[position] != ':') return 0;
    ++position;
    std::int64_t number = 0;
    const std::size_t first = position;
    for (; position < setting.size() && setting[position] >= '0' && setting[position] <= '9' && number < 1'000'000; ++position) {
      number = 10 * number + (setting[position] - '0');
    }
    if (position == first) return 0;
    if (++fields % 2 == 0) total += 1024 * block * number;
    block = number;
  }
  return fields % 2 == 0 ? total : 0;
}

static_assert(cublas_workspace_bytes(":4096:2:16:8") == 8'519'680);
static_assert(cublas_workspace_bytes("4096:2") == 0 && cublas_workspace_bytes(":4096") == 0 && cublas_workspace_bytes("") == 0);

/// The size of the workspace of a handle and a stream: as in `setting`, the value of CUBLAS_WORKSPACE_CONFIG or null, else 32 MiB
/// from Hopper on and 8.125 MiB before.
[[nodiscard]] inline std::int64_t cublas_workspace_bytes(const device_description& device, const char* setting) {
  if (setting != nullptr) {
    if (const std::int64_t bytes = cublas_workspace_bytes(std::string_view{setting}); bytes != 0) return bytes;
  }
  for (const std::string_view recent : {"141gb", "h100", "h200", "b100", "b200"}) {
    if (device.name.view().find(recent) != std::string_view::npos) return std::int64_t{32} << 20;
  }
  return cublas_workspace_bytes(std::string_view{":4096:2:16:8"});
}

/// The size of cuBLASLt's workspace: 1 MiB, or as in `setting`, the value of CUBLASLT_WORKSPACE_SIZE in KiB, or null.
[[nodiscard]] inline std::int64_t cublas_lt_workspace_bytes(const char* setting) {
  std::int64_t kib = 1024;
  if (setting != nullptr) {
    const std::string_view digits{setting};
    std::int64_t set = 0;
    const auto [end, fault] = std::from_chars(digits.begin(), digits.end(), set);
    constexpr std::int64_t most = std::int64_t{1} << 24;
    if (fault == std::errc{} && end == digits.end() && set > 0 && set <= most) kib = set;
  }
  return kib << 10;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
