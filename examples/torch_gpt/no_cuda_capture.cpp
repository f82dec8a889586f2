#include <nano_gpt/input_error.hpp>
#include <torch_gpt/cuda_capture.hpp>

namespace torch_gpt {

memprof::capture_guard begin_cuda_capture(const memprof::capture_options&) {
  throw nano_gpt::input_error{
      "--device cuda: this torch_gpt was built without memprof::torch_cuda; build it with the CUDA headers, or use "
      "--no-dispatch"};
}

}  // namespace torch_gpt
