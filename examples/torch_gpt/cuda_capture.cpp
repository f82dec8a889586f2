#include <torch_gpt/cuda_capture.hpp>

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_cuda.hpp>

namespace torch_gpt {

memprof::capture_guard begin_cuda_capture(const memprof::capture_options& wanted) {
  return memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>(wanted);
}

}  // namespace torch_gpt
