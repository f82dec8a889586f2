#include "torch_step.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/memprof.hpp>
#if MEMPROF_TOOL_TORCH_CUDA
#include <memprof/backend/torch_cuda.hpp>
#endif

#include <torch_gpt/model.hpp>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <cstdint>
#include <new>
#include <string>

namespace memprof_tool {
namespace {

memprof::capture_guard begin(bool on_cuda) {
#if MEMPROF_TOOL_TORCH_CUDA
  if (on_cuda) return memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>();
#endif
  if (on_cuda) memprof::detail::raise("this program was built without CUDA");
  return memprof::begin_capture<memprof::torch_backend>();
}

/// Casts to bf16 until the end of the scope.
class autocast_guard {
 public:
  autocast_guard(at::DeviceType device, bool is_on) : device_{device}, was_on_{at::autocast::is_autocast_enabled(device)} {
    at::autocast::set_autocast_enabled(device_, is_on);
    if (is_on) at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  autocast_guard(const autocast_guard&) = delete;
  autocast_guard& operator=(const autocast_guard&) = delete;
  ~autocast_guard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_on_);
  }

 private:
  at::DeviceType device_;
  bool was_on_;
};

void run(const torch_step& step) {
  const at::Device device{step.on_cuda ? at::kCUDA : at::kCPU};
  torch::manual_seed(step.seed);
  torch_gpt::decoder model{torch_gpt::model_config{.layers = step.layers,
                                                   .heads = step.heads,
                                                   .d_model = step.d_model,
                                                   .seq_len = step.seq_len,
                                                   .vocabulary = step.vocabulary}};
  model->to(device);
  torch::optim::Adam optimizer{model->parameters(), torch::optim::AdamOptions(step.learning_rate)};
  const auto random_tokens = [&] {
    return at::randint(step.vocabulary, {step.batch_size, step.seq_len}, at::TensorOptions(at::kLong).device(device));
  };
  const at::Tensor tokens = random_tokens();
  const at::Tensor targets = random_tokens();
  memprof::snapshot("MODEL_CREATION");

  at::Tensor loss;
  {
    const autocast_guard casts{device.type(), step.bf16};
    loss = model->forward(tokens, targets);
  }
  memprof::snapshot("FORWARD_PASS");
  loss.backward();
  memprof::snapshot("BACKWARD_PASS");
  optimizer.step();
  memprof::snapshot("OPTIMIZER_STEP");
}

}  // namespace

bool has_torch_cuda() { return MEMPROF_TOOL_TORCH_CUDA && torch::cuda::is_available(); }

bool has_torch_bf16(bool on_cuda) { return at::autocast::is_autocast_available(on_cuda ? at::kCUDA : at::kCPU); }

measured_torch_step measure_torch_step(const torch_step& step) {
  measured_torch_step result;
  auto capture = begin(step.on_cuda);
  try {
    run(step);
  } catch (const c10::OutOfMemoryError&) {
    result.ran_out_of_memory = true;
  } catch (const std::bad_alloc&) {
    result.ran_out_of_memory = true;
  } catch (const c10::Error& fault) {
    // libtorch's CPU allocator has no exception class of its own for this.
    result.ran_out_of_memory = std::string{fault.what_without_backtrace()}.find("memory") != std::string::npos;
    if (!result.ran_out_of_memory) memprof::detail::raise(std::string{"libtorch: "} + fault.what_without_backtrace());
  }
  capture.end();
  result.profile = capture.profile();
  return result;
}

}  // namespace memprof_tool
