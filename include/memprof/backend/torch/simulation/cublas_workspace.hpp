#pragma once

#include <memprof/backend/torch/simulation/fake_block.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/profile/fact/library_workspace.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/device_description.hpp>

#include <c10/core/Device.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// @file
/// The workspaces that libtorch permanently gives to cuBLAS and cuBLASLt, from the caching allocator, at a thread's first matrix
/// product and its first with a bias. On CUDA, one thread runs the forward pass and another the backward pass
/// (aten/src/ATen/cuda/CUDABlas.cpp, CublasHandlePool.cpp).

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

/// The size of cuBLASLt's workspace: 1 MiB, or as set in the environment, in KiB.
[[nodiscard]] inline std::int64_t cublas_lt_workspace_bytes() {
  std::int64_t kib = 1024;
  if (const char* const setting = std::getenv("CUBLASLT_WORKSPACE_SIZE")) {
    const std::string_view digits{setting};
    std::int64_t set = 0;
    const auto [end, fault] = std::from_chars(digits.begin(), digits.end(), set);
    constexpr std::int64_t most = std::int64_t{1} << 24;
    if (fault == std::errc{} && end == digits.end() && set > 0 && set <= most) kib = set;
  }
  return kib << 10;
}

/// The workspaces of one capture.
class cublas_workspaces {
 public:
  void begin(std::int64_t bytes) {
    const std::lock_guard<std::mutex> guard{lock_};
    // The workspaces of the last capture were live until it ended, so nothing is recorded.
    for (const workspace& each : made_) unmap_pages(each.address, static_cast<std::size_t>(each.bytes));
    made_.clear();
    totals_ = {};
    bytes_ = {bytes, cublas_lt_workspace_bytes()};
  }

  /// Creates the workspaces that the calling pass lacks on its stream: cuBLAS's, and that of cuBLASLt for a product with a bias.
  /// Cheap after that.
  void ensure(bool has_bias = false) {
    const bool is_backward = is_in_backward_pass();
    const std::uint64_t stream = fake_cuda_device.stream();
    const std::lock_guard<std::mutex> guard{lock_};
    make(0, is_backward, stream);
    if (has_bias) make(1, is_backward, stream);
  }

  /// Frees them all: each is made anew where it is needed.
  void clear() {
    const std::lock_guard<std::mutex> guard{lock_};
    for (const workspace& each : made_) {
      const label where = fake_cuda_device.deallocate(each.address);
      record_tensor_deallocation(each.address, static_cast<std::size_t>(each.bytes), cuda_space(), where);
      unmap_pages(each.address, static_cast<std::size_t>(each.bytes));
    }
    made_.clear();
  }

  /// Those that the capture has made.
  [[nodiscard]] std::vector<library_workspace> rows() {
    const std::lock_guard<std::mutex> guard{lock_};
    std::vector<library_workspace> made;
    for (std::size_t library = 0; library < totals_.size(); ++library) {
      if (totals_[library] != 0) made.push_back({"cuda:0", library == 0 ? "cuBLAS" : "cuBLASLt", totals_[library]});
    }
    return made;
  }

  [[nodiscard]] static cublas_workspaces& instance() {
    static auto* const all = new cublas_workspaces;
    return *all;
  }

 private:
  struct workspace {
    std::size_t library;
    bool is_backward;
    std::uint64_t stream;
    void* address;  ///< reserved so that no other block gets it; never written
    std::int64_t bytes;
  };

  [[nodiscard]] static std::uint8_t cuda_space() { return space_of(c10::Device{c10::kCUDA, 0}); }

  void make(std::size_t library, bool is_backward, std::uint64_t stream) {
    for (const workspace& each : made_) {
      if (each.library == library && each.is_backward == is_backward && each.stream == stream) return;
    }
    const std::int64_t bytes = bytes_[library];
    void* const address = map_pages(static_cast<std::size_t>(bytes));
    made_.push_back({library, is_backward, stream, address, bytes});
    std::int64_t now = 0;
    for (const workspace& each : made_) now += each.library == library ? each.bytes : 0;
    totals_[library] = std::max(totals_[library], now);
    const label where = fake_cuda_device.allocate(address, bytes);
    const event_kind kind = where != 0 ? event_kind::allocate_on_stream : event_kind::allocate;
    record_event({0, reinterpret_cast<std::uintptr_t>(address), static_cast<std::uint64_t>(bytes), where, kind, cuda_space(),
                  optional_category{category::other}.tag()});
  }

  std::mutex lock_;
  std::array<std::int64_t, 2> bytes_{};   ///< of a workspace of cuBLAS and of cuBLASLt
  std::array<std::int64_t, 2> totals_{};  ///< the most that each library had
  std::vector<workspace> made_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
