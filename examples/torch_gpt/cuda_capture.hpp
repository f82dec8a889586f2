#pragma once

#include <memprof/memprof.hpp>

namespace torch_gpt {

/// Begins a capture of tensors on the CPU and on GPUs. Throws if the program was built without CUDA.
[[nodiscard]] memprof::capture_guard begin_cuda_capture(const memprof::capture_options& wanted);

}  // namespace torch_gpt
