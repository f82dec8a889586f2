#include "captures.hpp"
#include "fault_of.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <vector>

namespace memprof_tests::torch_no_dispatch_outside {

using Catch::Matchers::ContainsSubstring;

// Tensors from before the capture, and such as are made for real within it.

TEST_CASE("torch no_dispatch: tensors from before the capture keep their data, and read as if they were written") {
  auto weight = torch::ones({16, 16});
  auto large = torch::ones({1000, 1000});
  auto counter = torch::zeros({1}, torch::kLong);
  {
    auto capture = begin_no_dispatch();
    auto product = torch::mm(weight, weight);
    CHECK(product[0][0].item<float>() == 16.0F);
    weight.add_(1);
    CHECK(weight[3][3].item<float>() == 2.0F);
    for (int step = 0; step < 3; ++step) counter += 1;
    CHECK(counter.item<std::int64_t>() == 3);
    CHECK(large[2][3].item<float>() == 1.0F);
    CHECK(estimates_of(capture.profile()).empty());
    large.mul_(2);
    CHECK(large[2][3].item<float>() == 0.0F);
    CHECK(reads_of(capture.profile()).size() == 1);
    CHECK(capture.profile().space("cpu").cumulative_current == 16 * 16 * 4);
  }
  CHECK(weight.sum().item<float>() == 256.0F);
  CHECK(large.sum().item<float>() == 1e6F);
  CHECK(counter.item<std::int64_t>() == 0);
}

TEST_CASE("torch no_dispatch: a tensor from before the capture that is resized keeps its data") {
  auto grown = torch::ones({1000, 1000});
  auto halved = torch::ones({1000, 1000});
  {
    auto capture = begin_no_dispatch();
    grown.resize_({2000, 1000});
    halved.resize_({500, 1000});
    CHECK(capture.profile().space("cpu").cumulative_current == 2000 * 1000 * 4);
  }
  CHECK(grown.narrow(0, 0, 1000).sum().item<float>() == 1e6F);
  CHECK(halved.sum().item<float>() == 5e5F);
}

TEST_CASE("torch no_dispatch: a model from before the capture trains, and is as it was afterwards") {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(200, 300), torch::nn::BatchNorm1d(300), torch::nn::Linear(300, 5));
  std::vector<torch::Tensor> before;
  for (const auto& parameter : model->parameters()) before.push_back(parameter.detach().clone());
  {
    auto capture = begin_no_dispatch();
    torch::optim::Adam optimizer(model->parameters(), 1e-3);
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      model->forward(torch::randn({8, 200})).square().mean().backward();
      optimizer.step();
    }
    CHECK(estimates_of(capture.profile()).empty());
  }
  const auto after = model->parameters();
  for (std::size_t index = 0; index < before.size(); ++index) CHECK(torch::equal(before[index], after[index]));
  CHECK(model->named_buffers()["1.num_batches_tracked"].item<std::int64_t>() == 0);
}

TEST_CASE("torch no_dispatch: work in a real_scope is done, and its memory counts") {
  auto capture = begin_no_dispatch();
  torch::Tensor loaded;
  const auto fake = torch::ones({4});
  {
    const memprof::real_scope scope;
    loaded = torch::arange(100'000, torch::kFloat);
    CHECK(loaded.sum().item<float>() > 4.9e9F);
    CHECK_THAT(fault_of([&] { (void)(loaded.narrow(0, 0, 4) + fake); }), ContainsSubstring("real_scope"));
  }
  CHECK(loaded.data_ptr<float>()[3] == 3.0F);
  CHECK((loaded.narrow(0, 0, 4) + fake)[2].item<float>() == 3.0F);
  CHECK(capture.profile().space("cpu").cumulative_current == 400'000 + 16);
}

}  // namespace memprof_tests::torch_no_dispatch_outside
