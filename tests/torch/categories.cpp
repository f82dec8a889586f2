#include "captures.hpp"
#include "invocations.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace memprof_tests::torch_categories {

namespace {

memprof::capture_guard begin() { return begin_torch(); }

using categories = std::map<std::string, std::int64_t>;

/// Parameters of the modules of `layers`, in elements, by arithmetic.
constexpr std::int64_t vocabulary = 11;
constexpr std::int64_t width = 8;
constexpr std::int64_t classes = 3;
constexpr std::int64_t image = 6;
constexpr std::int64_t embedding_parameters = vocabulary * width;
constexpr std::int64_t norm_parameters = 2 * width;
constexpr std::int64_t linear_parameters = width * classes + classes;
constexpr std::int64_t convolution_parameters = classes * 1 * 3 * 3 + classes;
constexpr std::int64_t batch_norm_parameters = 2 * classes;
constexpr std::int64_t batch_norm_buffers = 2 * classes * 4 + 8;  // bytes: running mean and variance, and a count of int64
constexpr std::int64_t parameter_bytes =
    4 * (embedding_parameters + norm_parameters + linear_parameters + convolution_parameters + batch_norm_parameters);

struct layers_impl : torch::nn::Module {
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(vocabulary, width));
  torch::nn::LayerNorm norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(width, classes));
  torch::nn::Conv2d convolution = register_module("convolution", torch::nn::Conv2d(1, classes, 3));
  torch::nn::BatchNorm2d batch_norm = register_module("batch_norm", torch::nn::BatchNorm2d(classes));

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& images) {
    const at::Tensor words = linear(norm(embedding(tokens))).mean();
    const at::Tensor pictures = batch_norm(convolution(images)).relu().mean();
    return words + pictures;
  }
};
TORCH_MODULE_IMPL(layers, layers_impl);

/// One step, after which nothing lives but parameters, buffers and what the optimizer keeps.
template <class Optimizer>
void step(layers& model, Optimizer& optimizer) {
  const at::Tensor tokens = torch::randint(vocabulary, {4, 5}, torch::kLong);
  const at::Tensor images = torch::randn({2, 1, image, image});
  optimizer.zero_grad();
  model->forward(tokens, images).backward();
  optimizer.step();
}

/// What is live after two steps, with the gradients of the second and without.
template <class Optimizer, class Options>
void check_optimizer(Options options, std::int64_t states_per_parameter) {
  auto capture = begin();
  layers model;
  memprof::annotate_module(model);
  Optimizer optimizer{model->parameters(), options};
  auto states = memprof::annotate_optimizer(optimizer);
  categories expected{{"parameter", parameter_bytes}, {"gradient", parameter_bytes}, {"other", batch_norm_buffers}};
  if (states_per_parameter != 0) expected["optimizer_state"] = states_per_parameter * parameter_bytes;
  step(model, optimizer);
  CHECK(live_by_category(capture) == expected);
  step(model, optimizer);
  CHECK(live_by_category(capture) == expected);
  optimizer.zero_grad();
  expected.erase("gradient");
  CHECK(live_by_category(capture) == expected);
  capture.end();
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

const memprof::live_block* find_block(const memprof::live_set& live, const std::string& name) {
  for (const memprof::live_block& block : live.largest_blocks) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("torch categories: parameters, gradients and the moments of SGD follow from arithmetic") {
  check_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1), 0);
  check_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9), 1);
}

TEST_CASE("torch categories: the moments of Adam and AdamW follow from arithmetic") {
  check_optimizer<torch::optim::Adam>(torch::optim::AdamOptions(1e-3), 2);
  check_optimizer<torch::optim::Adam>(torch::optim::AdamOptions(1e-3).amsgrad(true), 3);
  check_optimizer<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-3), 2);
}

TEST_CASE("torch categories: the state of RMSprop and Adagrad follows from arithmetic") {
  check_optimizer<torch::optim::RMSprop>(torch::optim::RMSpropOptions(1e-3), 1);
  check_optimizer<torch::optim::RMSprop>(torch::optim::RMSpropOptions(1e-3).momentum(0.9).centered(true), 3);
  check_optimizer<torch::optim::Adagrad>(torch::optim::AdagradOptions(1e-3), 1);
}

TEST_CASE("torch categories: the state is known already in the segment of the first step") {
  auto capture = begin();
  torch::nn::Linear model{64, 32};
  memprof::annotate_module(model, "head");
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
  auto states = memprof::annotate_optimizer(optimizer);
  model->forward(torch::ones({1, 64})).sum().backward();
  capture.snapshot("BACKWARD_PASS");
  optimizer.step();
  capture.snapshot("OPTIMIZER_STEP");
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  constexpr std::int64_t weight_bytes = 64 * 32 * 4;
  constexpr std::int64_t bytes = weight_bytes + 32 * 4;
  const memprof::live_set& at_peak = cpu.segments.at(1).live_at_peak;
  categories found;
  for (const memprof::owned_bytes& row : at_peak.by_category) found[row.owner] = row.bytes;
  CHECK(found["parameter"] == bytes);
  CHECK(found["gradient"] == bytes);
  CHECK(found["optimizer_state"] == 2 * weight_bytes);  // the peak is within the update of the weight, which comes first
  const memprof::live_block* const moment = find_block(at_peak, "head.weight.exp_avg_sq");
  REQUIRE(moment != nullptr);
  CHECK(moment->shape == "[32, 64]");
  CHECK(moment->dtype == "float32");
  CHECK(find_block(at_peak, "head.weight.grad") != nullptr);
}

TEST_CASE("torch categories: an optimizer annotated after its first step is known from then on") {
  auto capture = begin_torch_allocations();
  torch::nn::Linear model{64, 32};
  memprof::annotate_module(model);
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  model->forward(torch::ones({1, 64})).sum().backward();
  optimizer.step();
  { auto states = memprof::annotate_optimizer(optimizer); }
  CHECK(live_by_category(capture)["optimizer_state"] == (64 * 32 + 32) * 4);
}

TEST_CASE("torch categories: several optimizers may be annotated, and go in any order") {
  auto capture = begin();
  torch::nn::Linear first{4, 4};
  torch::nn::Linear second{8, 8};
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.1).momentum(0.9);
  torch::optim::SGD of_first{first->parameters(), options};
  torch::optim::SGD of_second{second->parameters(), options};
  auto states_of_first = std::make_unique<memprof::optimizer_annotation>(of_first);
  auto states_of_second = std::make_unique<memprof::optimizer_annotation>(of_second);
  states_of_first.reset();
  second->forward(first->forward(torch::ones({1, 4})).repeat({1, 2})).sum().backward();
  of_first.step();
  of_second.step();
  CHECK(live_by_category(capture)["optimizer_state"] == (8 * 8 + 8) * 4);
}

TEST_CASE("torch categories: what autograd records is an activation, and what it does not is unknown") {
  auto capture = begin();
  const at::Tensor weight = torch::ones({10, 10}, torch::requires_grad());
  const at::Tensor data = torch::ones({10, 10});
  CHECK(live_by_category(capture) == categories{{"other", 800}});
  const at::Tensor prepared = data + 1;  // no part of a graph
  CHECK(live_by_category(capture) == categories{{"other", 1200}});
  const at::Tensor result = at::mm(data, weight);
  CHECK(live_by_category(capture) == categories{{"other", 1200}, {"activation", 400}});
  {
    const torch::NoGradGuard evaluation;
    const at::Tensor evaluated = at::mm(data, weight);
    CHECK(live_by_category(capture) == categories{{"other", 1600}, {"activation", 400}});
  }
  capture.end();
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch categories: what an operator allocates before its node is an activation as well") {
  const at::Tensor input = torch::ones({100}, torch::requires_grad());
  auto capture = begin();
  const at::Tensor kept = at::dropout(input, 0.5, true);  // its mask of floats is made first
  const categories live = live_by_category(capture);
  CHECK(live.count("other") == 0);
  CHECK(live.at("activation") >= 400 + 100);  // the result, and a mask of bytes at least
  capture.end();
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch categories: the inside of a custom function is unknown") {
  struct doubled : torch::autograd::Function<doubled> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input * 2; }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
      return {gradients[0] * 2};
    }
  };
  const at::Tensor input = torch::ones({100}, torch::requires_grad());
  auto capture = begin();
  const at::Tensor output = doubled::apply(input);
  CHECK(live_by_category(capture) == categories{{"other", 400}});
}

TEST_CASE("torch categories: a category that the program tells holds where autograd records nothing") {
  auto capture = begin();
  at::Tensor batch;
  {
    auto scope = memprof::track_operation<"load batch">(memprof::category::input);
    batch = torch::ones({5}) + 1;
  }
  CHECK(live_by_category(capture) == categories{{"input", 20}});
}

TEST_CASE("torch categories: an input has its name") {
  auto capture = begin();
  const at::Tensor tokens = torch::zeros({2, 3}, torch::kLong);
  memprof::annotate_input(tokens, "tokens");
  const memprof::live_set live = live_set_now(capture);
  REQUIRE(live.largest_blocks.size() == 1);
  CHECK(live.largest_blocks[0].name == "tokens");
  CHECK(live.largest_blocks[0].shape == "[2, 3]");
  CHECK(live.largest_blocks[0].dtype == "int64");
  CHECK(live.largest_blocks[0].category == memprof::category::input);
}

TEST_CASE("torch categories: tensors say whether autograd computes their gradients") {
  auto capture = begin();
  torch::nn::Linear model{16, 8};
  model->bias.set_requires_grad(false);
  const at::Tensor input = torch::ones({4, 16}, torch::requires_grad());
  memprof::annotate_module(model, "head");
  memprof::annotate_input(input, "features");
  model->forward(input).sum().backward();
  const memprof::live_set live = live_set_now(capture);
  const auto gradient_of = [&](const char* name) {
    const memprof::live_block* const block = find_block(live, name);
    return block == nullptr ? memprof::requires_grad::unknown : block->requires_grad;
  };
  CHECK(gradient_of("head.weight") == memprof::requires_grad::yes);
  CHECK(gradient_of("head.bias") == memprof::requires_grad::no);
  CHECK(gradient_of("head.weight.grad") == memprof::requires_grad::no);
  CHECK(gradient_of("features") == memprof::requires_grad::yes);
}

TEST_CASE("torch categories: the backward pass allocates temporaries, of which gradients remain") {
  auto capture = begin();
  torch::nn::Linear model{16, 16};
  memprof::annotate_module(model);
  const at::Tensor input = torch::ones({4, 16});
  at::Tensor loss = model->forward(input).relu().sum();
  capture.snapshot("FORWARD_PASS");
  loss.backward();
  capture.snapshot("BACKWARD_PASS");
  CHECK(capture.profile().space("cpu").segments.at(1).live_at_peak.by_category.size() >= 3);
  loss.reset();
  categories live = live_by_category(capture);
  CHECK(live["gradient"] == (16 * 16 + 16) * 4);
  CHECK(live.count("temporary") == 0);
  CHECK(live.count("activation") == 0);
}

TEST_CASE(
    "torch categories: a gradient that is added to keeps its block and its name, and one from before a capture is unknown") {
  torch::nn::Linear model{16, 16};
  memprof::annotate_module(model);
  const at::Tensor input = torch::ones({4, 16});
  auto capture = begin();
  for (int count = 0; count < 3; ++count) model->forward(input).sum().backward();
  CHECK(live_by_category(capture) == categories{{"gradient", (16 * 16 + 16) * 4}});
  const memprof::live_set live = live_set_now(capture);
  CHECK(find_block(live, "weight.grad") != nullptr);
  CHECK(find_block(live, "bias.grad") != nullptr);
  capture.end();
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch categories: a hook that somebody else has put on a parameter still runs") {
  struct counting_hook : torch::autograd::PostAccumulateGradHook {
    explicit counting_hook(int& calls) : calls_(calls) {}
    void operator()(const at::Tensor&) override { ++calls_; }
    int& calls_;
  };
  int calls = 0;
  auto capture = begin();
  torch::nn::Linear model{4, 4};
  torch::autograd::impl::set_post_acc_grad_hooks(model->weight, std::make_unique<counting_hook>(calls));
  memprof::annotate_module(model);
  memprof::annotate_module(model, "again");
  model->forward(torch::ones({1, 4})).sum().backward();
  CHECK(calls == 1);
  CHECK(find_block(live_set_now(capture), "again.weight.grad") != nullptr);
}

TEST_CASE("torch categories: a sparse gradient is known in both of its parts") {
  auto capture = begin();
  torch::nn::Embedding model{torch::nn::EmbeddingOptions(100, 8).sparse(true)};
  memprof::annotate_module(model);
  model->forward(torch::zeros({5}, torch::kLong)).sum().backward();
  const categories live = live_by_category(capture);
  CHECK(live.at("gradient") == 5 * 8 * 4 + 5 * 8);  // values and int64 indices
}

TEST_CASE("torch categories: a sparse state is known in both of its parts, and telling it does not wait for itself") {
  auto capture = begin();
  torch::nn::Embedding model{torch::nn::EmbeddingOptions(100, 8).sparse(true)};
  memprof::annotate_module(model);
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  auto states = memprof::annotate_optimizer(optimizer);
  model->forward(torch::zeros({5}, torch::kLong)).sum().backward();
  optimizer.step();
  CHECK(live_by_category(capture)["optimizer_state"] == 5 * 8 * 4 + 5 * 8);  // values and int64 indices
  CHECK(find_block(live_set_now(capture), "weight.momentum_buffer") != nullptr);
  CHECK(invocations_of(capture.profile(), "aten::_indices") == 0);
}

}  // namespace memprof_tests::torch_categories
