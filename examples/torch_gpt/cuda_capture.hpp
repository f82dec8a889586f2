#pragma once

#include <memprof/memprof.hpp>

namespace torch_gpt {

/// Begins a capture of tensors on the CPU and on GPUs. Where the program was built without CUDA it throws, and says so.
[[nodiscard]] memprof::capture_guard begin_cuda_capture(const memprof::capture_options& wanted);

}  // namespace torch_gpt
