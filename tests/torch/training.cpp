#include "captures.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace memprof_tests::torch_training {

namespace {

struct network_impl : torch::nn::Module {
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(17, 12));
  torch::nn::LayerNorm norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({12})));
  torch::nn::Linear first = register_module("first", torch::nn::Linear(12, 24));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.2));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(24, 17));

  at::Tensor forward(const at::Tensor& tokens) {
    auto scope = memprof::track_operation<"network">();
    return second(dropout(at::gelu(first(norm(embedding(tokens))))));
  }
};
TORCH_MODULE_IMPL(network, network_impl);

enum class watched { no, yes };

/// Parameters after a few steps with gradient accumulation and clipping, one after the other.
std::vector<at::Tensor> train(watched how) {
  torch::manual_seed(7);
  network model;
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-2)};
  if (how == watched::yes) memprof::annotate_module(model);
  auto states = memprof::annotate_optimizer(optimizer);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    for (int part = 0; part < 2; ++part) {
      const at::Tensor tokens = torch::randint(17, {6, 5}, torch::kLong);
      const at::Tensor logits = model->forward(tokens).view({-1, 17});
      torch::nn::functional::cross_entropy(logits, tokens.view({-1})).backward();
    }
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
  }
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : model->parameters()) result.push_back(parameter.detach().clone());
  return result;
}

bool are_equal(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t index = 0; index < left.size(); ++index) {
    if (!at::equal(left[index], right[index])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("torch training: its result is the same bit by bit with and without a capture") {
  const std::vector<at::Tensor> plain = train(watched::no);
  auto capture = begin_torch();
  auto ops = memprof::track_pytorch_ops();
  CHECK(are_equal(train(watched::yes), plain));
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch training: annotations and operations change nothing of what is allocated") {
  auto counting = begin_torch_allocations();
  { const auto result = train(watched::no); }
  counting.end();
  const memprof::space_profile bare = counting.profile().space("cpu");

  auto everything = begin_torch();
  {
    auto ops = memprof::track_pytorch_ops();
    const auto result = train(watched::yes);
  }
  everything.end();
  const memprof::space_profile& full = everything.profile().space("cpu");
  CHECK(full.cumulative_peak == bare.cumulative_peak);
  CHECK(full.cumulative_current == bare.cumulative_current);
  CHECK(full.allocation_count == bare.allocation_count);
  CHECK(full.allocations == bare.allocations);
  CHECK(full.deallocation_count == bare.deallocation_count);
}

TEST_CASE("torch training: the self bytes of PyTorch's operators and of the operations agree") {
  auto capture = begin_torch();
  {
    auto ops = memprof::track_pytorch_ops();
    const auto result = train(watched::yes);
  }
  capture.end();
  std::int64_t of_table = 0;
  for (const memprof::pytorch_operation& row : operators_of(capture.profile())) of_table += row.cpu_memory;
  std::int64_t of_operators = 0;
  for (const memprof::operation_profile& operation : capture.profile().operations) {
    // Frees outside of operators belong to the engine's wrappers and to the program's own scope: the table has the former as
    // rows.
    if (operation.name == "network") continue;
    for (const memprof::operation_usage& usage : operation.usage) of_operators += usage.self_delta;
  }
  CHECK(of_table == of_operators);
}

}  // namespace memprof_tests::torch_training
