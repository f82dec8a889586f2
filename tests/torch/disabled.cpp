// Linked with the others: a unit in which memprof is compiled out has all names, and its captures see nothing.
#undef MEMPROF_ENABLED
#define MEMPROF_ENABLED 0
#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

TEST_CASE("torch disabled: a program runs as it stands, and nothing is captured") {
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  auto counting = memprof::begin_capture<memprof::torch_allocations>();
  CHECK(c10::GetAllocator(c10::kCPU) == before);
  torch::nn::Linear model{4, 2};
  memprof::annotate_module(model);
  memprof::annotate_module(*model, "head");
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1)};
  auto states = memprof::annotate_optimizer(optimizer);
  auto ops = memprof::track_pytorch_ops();
  const at::Tensor input = torch::ones({1, 4});
  memprof::annotate_input(input, "input");
  model->forward(input).sum().backward();
  optimizer.step();
  capture.end();
  CHECK(capture.profile().spaces.empty());
  CHECK(memprof::rows_of<memprof::pytorch_operation>(capture.profile().facts).empty());
  CHECK(torch::autograd::impl::post_acc_grad_hooks(model->weight) == nullptr);
}
