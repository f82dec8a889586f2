#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>

namespace memprof_tool {

/// A step that libtorch runs; only where the program was built with it.
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
  bool bf16 = false;  ///< with automatic casts
};

struct measured_torch_step {
  memprof::profile profile;  ///< with the segments FORWARD_PASS, BACKWARD_PASS and OPTIMIZER_STEP, as far as it came
  bool ran_out_of_memory = false;
};

/// Whether libtorch finds a GPU whose memory can be measured.
[[nodiscard]] bool has_torch_cuda();
/// Whether libtorch casts to bf16 on that device.
[[nodiscard]] bool has_torch_bf16(bool on_cuda);

/// Runs it under a capture. Throws `memprof::error` with libtorch's reason if that refuses for another reason than memory.
[[nodiscard]] measured_torch_step measure_torch_step(const torch_step& step);

}  // namespace memprof_tool
