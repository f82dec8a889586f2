#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>

namespace memprof_tool {

/// A step that libtorch runs. Exists only if the program was built with libtorch.
struct torch_step {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
  std::int64_t d_model = 1;
  std::int64_t heads = 1;
  std::int64_t layers = 1;
  std::int64_t vocabulary = 1;
  double learning_rate = 0.001;
  std::uint64_t seed = 42;
  bool on_cuda = false;
  bool bf16 = false;  ///< with autocast
};

struct measured_torch_step {
  memprof::profile profile;  ///< the segments FORWARD_PASS, BACKWARD_PASS and OPTIMIZER_STEP, as far as the step got
  bool ran_out_of_memory = false;
};

/// Whether libtorch finds a GPU whose memory can be measured.
[[nodiscard]] bool has_torch_cuda();
/// Whether libtorch can autocast to bf16 on that device.
[[nodiscard]] bool has_torch_bf16(bool on_cuda);

/// Runs the step under a capture. Throws `memprof::error` with libtorch's reason if it fails for any reason but lack of memory.
[[nodiscard]] measured_torch_step measure_torch_step(const torch_step& step);

}  // namespace memprof_tool
