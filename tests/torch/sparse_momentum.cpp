#include "captures.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::torch_sparse_momentum {

TEST_CASE("torch categories: the momentum of sparse gradients is annotated anew in each step, which replaces its blocks") {
  constexpr std::int64_t tokens = 5;
  constexpr std::int64_t features = 8;
  constexpr std::int64_t bytes_per_token = features * 4 + 8;  // float32 values, and an int64 index
  auto capture = begin_torch();
  torch::nn::Embedding model{torch::nn::EmbeddingOptions(100, features).sparse(true)};
  torch::nn::Linear dense{features, 3};
  memprof::annotate_module(model);
  auto parameters = model->parameters();
  for (const auto& parameter : dense->parameters()) parameters.push_back(parameter);
  torch::optim::SGD optimizer{parameters, torch::optim::SGDOptions(0.1).momentum(0.9)};
  auto states = memprof::annotate_optimizer(optimizer);
  constexpr std::int64_t dense_bytes = (features * 3 + 3) * 4;
  for (int step = 1; step <= 4; ++step) {
    optimizer.zero_grad();
    const auto others = torch::arange(step * tokens, (step + 1) * tokens, torch::kLong);
    dense->forward(model->forward(others)).sum().backward();
    optimizer.step();
    // The sum of momentum and gradient has the tokens of both, which are others in each step.
    CHECK(live_by_category(capture)["optimizer_state"] == step * tokens * bytes_per_token + dense_bytes);
    CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
  }
  optimizer.zero_grad();
  CHECK(live_by_category(capture)["gradient"] == 0);
}

}  // namespace memprof_tests::torch_sparse_momentum
