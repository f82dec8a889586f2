#pragma once

#include <memprof/backend/torch/simulation/fake_block.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/device_description.hpp>

#include <c10/core/Device.h>
#include <torch/csrc/autograd/graph_task.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

/// @file
/// The workspace that libtorch permanently gives to cuBLAS, from the caching allocator, at a thread's first matrix product. On
/// CUDA, one thread runs the forward pass and another the backward pass (aten/src/ATen/cuda/CUDABlas.cpp, CublasHandlePool.cpp).

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

/// The size of a device's workspace: as set in the environment, else 32 MiB from Hopper on and 8.125 MiB before.
[[nodiscard]] inline std::int64_t cublas_workspace_bytes(const device_description& device) {
  if (const char* const setting = std::getenv("CUBLAS_WORKSPACE_CONFIG")) {
    if (const std::int64_t bytes = cublas_workspace_bytes(std::string_view{setting}); bytes != 0) return bytes;
  }
  for (const std::string_view recent : {"141gb", "h100", "h200", "b100", "b200"}) {
    if (device.name.view().find(recent) != std::string_view::npos) return std::int64_t{32} << 20;
  }
  return cublas_workspace_bytes(std::string_view{":4096:2:16:8"});
}

/// The workspaces of one capture.
class cublas_workspaces {
 public:
  void begin(std::int64_t bytes) {
    const std::lock_guard<std::mutex> guard{lock_};
    if (bytes != bytes_) {
      unmap_pages(addresses_, 2 * static_cast<std::size_t>(bytes_));
      addresses_ = static_cast<char*>(map_pages(2 * static_cast<std::size_t>(bytes)));
    }
    bytes_ = bytes;
    // The workspaces of the last capture were live until it ended, so nothing is recorded.
    is_made_ = {};
  }

  /// Creates the workspace of the calling pass if it has none yet. Cheap after that.
  void ensure() {
    const bool is_backward = torch::autograd::get_current_graph_task_id() != -1;
    const std::lock_guard<std::mutex> guard{lock_};
    if (std::exchange(is_made_[is_backward ? 1 : 0], true)) return;
    const auto bytes = static_cast<std::size_t>(bytes_);
    fake_device_usage.allocate(bytes_);
    event_sink{}.allocate({space_of(c10::Device{c10::kCUDA, 0})}, addresses_ + (is_backward ? bytes : 0), bytes);
  }

  [[nodiscard]] static cublas_workspaces& instance() {
    static auto* const all = new cublas_workspaces;
    return *all;
  }

 private:
  std::mutex lock_;
  std::int64_t bytes_ = 0;
  char* addresses_ = nullptr;      ///< of both workspaces, reserved so that no other block gets them; never written
  std::array<bool, 2> is_made_{};  ///< for the forward and the backward pass
};

}  // namespace memprof::inline MEMPROF_ABI::detail
