#include "captures.hpp"

#include <torch/script.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests::torch_no_dispatch_programs {

// What programs use besides operators: loaders, packed sequences, functions with a backward pass of their own, scripts.

namespace {

/// Images that say which they are.
struct numbered : torch::data::datasets::Dataset<numbered> {
  torch::data::Example<> get(std::size_t index) override {
    auto image = torch::empty({3, 64, 64});
    image.data_ptr<float>()[0] = static_cast<float>(index);
    return {image.div(255), torch::tensor(static_cast<std::int64_t>(index))};
  }
  [[nodiscard]] torch::optional<std::size_t> size() const override { return 100; }
};

}  // namespace

TEST_CASE("torch no_dispatch: a data loader with workers gives every example once") {
  auto capture = begin_no_dispatch();
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      numbered{}.map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(16).workers(2));
  std::multiset<std::int64_t> seen;
  for (const auto& batch : *loader) {
    CHECK(batch.data.sizes().slice(1) == std::vector<std::int64_t>{3, 64, 64});
    for (std::int64_t index = 0; index < batch.target.numel(); ++index) seen.insert(batch.target[index].item<std::int64_t>());
  }
  CHECK(seen.size() == 100);
  CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 100);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("torch no_dispatch: packed sequences have their lengths, and recurrent layers their steps") {
  auto capture = begin_no_dispatch();
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(60, 70).batch_first(true));
  const auto input = torch::randn({4, 90, 60}).requires_grad_();
  const auto lengths = torch::tensor({90, 50, 50, 7});
  const auto packed = torch::nn::utils::rnn::pack_padded_sequence(input, lengths, true);
  CHECK(packed.data().size(0) == 90 + 50 + 50 + 7);
  CHECK(packed.batch_sizes().numel() == 90);
  CHECK(packed.batch_sizes()[60].item<std::int64_t>() == 1);
  const auto [output, state] = lstm->forward_with_packed_input(packed);
  const auto [padded, real_lengths] = torch::nn::utils::rnn::pad_packed_sequence(output, true);
  CHECK(padded.sizes() == std::vector<std::int64_t>{4, 90, 70});
  CHECK(torch::equal(real_lengths, lengths));
  padded.sum().backward();
  CHECK(input.grad().sizes() == input.sizes());
}

TEST_CASE("torch no_dispatch: an autograd function that works on the data itself runs") {
  struct doubled : torch::autograd::Function<doubled> {
    static torch::Tensor twice(const torch::Tensor& from) {
      auto to = torch::empty_like(from);
      for (std::int64_t index = 0; index < from.numel(); ++index) {
        to.data_ptr<float>()[index] = 2 * from.const_data_ptr<float>()[index];
      }
      return to;
    }
    static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return twice(x); }
    static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*, torch::autograd::tensor_list gradients) {
      return {twice(gradients[0].contiguous())};
    }
  };
  auto capture = begin_no_dispatch();
  const auto x = torch::randn({100, 1000}).requires_grad_();
  doubled::apply(x).sum().backward();
  CHECK(x.grad().sizes() == x.sizes());
  const auto small = torch::ones({3}).requires_grad_();
  const auto y = doubled::apply(small);
  CHECK(y[1].item<float>() == 2.0F);
  y.sum().backward();
  CHECK(small.grad()[2].item<float>() == 2.0F);
}

TEST_CASE("torch no_dispatch: a script runs, with the control flow that known values ask for") {
  const auto script = torch::jit::compile(R"(
def layer(x, weight, repeats: int):
    for _ in range(repeats):
        x = torch.relu(torch.mm(x, weight))
    return x

def pick(flag, x):
    if bool(flag):
        return x[:1]
    return x
)");
  auto capture = begin_no_dispatch();
  const auto x = torch::randn({64, 300});
  const auto weight = torch::randn({300, 300}).requires_grad_();
  for (int call = 0; call < 3; ++call) {
    const auto y = script->run_method("layer", x, weight, 3).toTensor();
    CHECK(y.sizes() == x.sizes());
    y.sum().backward();
  }
  CHECK(weight.grad().sizes() == weight.sizes());
  CHECK(script->run_method("pick", torch::ones({1}), x).toTensor().size(0) == 1);
  CHECK(script->run_method("pick", torch::zeros({1}), x).toTensor().size(0) == 64);
}

}  // namespace memprof_tests::torch_no_dispatch_programs
