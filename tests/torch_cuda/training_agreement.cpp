// A small training step on a GPU, segment by segment, against PyTorch's own statistics, to the byte.
#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_cuda.hpp>
#include <memprof/memprof.hpp>

#include <torch_cuda/agreement.hpp>
#include <torch_cuda/bring_into_use.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>

namespace {

using namespace agreement;

void train() {
  constexpr std::int64_t width = 512;
  constexpr std::int64_t batch = 64;
  auto capture = compared_capture::begin<memprof::torch_backend, memprof::torch_cuda_backend>();
  torch::nn::Sequential model;
  capture.segment("MODEL_CREATION", [&] {
    model = torch::nn::Sequential{torch::nn::Linear{width, 4 * width}, torch::nn::GELU{},
                                  torch::nn::LayerNorm{torch::nn::LayerNormOptions{{4 * width}}},
                                  torch::nn::Linear{4 * width, width}};
    model->to(torch::kCUDA);
  });
  torch::optim::AdamW optimizer{model->parameters()};
  const at::Tensor input = torch::randn({batch, width}, torch::kCUDA);
  const at::Tensor target = torch::randn({batch, width}, torch::kCUDA);
  at::Tensor loss;
  capture.segment("INPUT", [] {});
  for (int step = 0; step < 2; ++step) {
    capture.segment("FORWARD_PASS", [&] { loss = torch::mse_loss(model->forward(input), target); });
    capture.segment("BACKWARD_PASS", [&] { loss.backward(); });
    capture.segment("OPTIMIZER_STEP", [&] {
      optimizer.step();
      optimizer.zero_grad();
    });
  }
  capture.compare();
  std::fputs(memprof::to_text(capture.profile()).c_str(), stdout);
}

}  // namespace

int main() {
  if (!bring_cuda_into_use()) {
    std::puts("skipped: there is no CUDA device");
    return 77;
  }
  train();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
