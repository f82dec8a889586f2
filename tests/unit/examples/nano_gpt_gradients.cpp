#include <nano_gpt/corpus.hpp>
#include <nano_gpt/model.hpp>
#include <nano_gpt/random_stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace memprof_tests::examples_nano_gpt_gradients {

namespace {

using nano_gpt::architecture;

/// The smallest models in which nothing is 1: several layers, heads, sequences, and an odd number of rows and columns. Heads of
/// the Llama have two pairs to rotate, and two of them share their keys and values.
constexpr nano_gpt::model_config tiny{.vocabulary_size = 5, .seq_len = 3, .layers = 2, .heads = 2, .d_model = 6};
constexpr nano_gpt::model_config tiny_llama{.vocabulary_size = 5,
                                            .seq_len = 3,
                                            .layers = 2,
                                            .heads = 4,
                                            .d_model = 16,
                                            .kv_heads = 2,
                                            .mlp_width = 7,
                                            .architecture = architecture::llama};

nano_gpt::model_config tied(nano_gpt::model_config config) {
  config.tied_output = true;
  return config;
}

nano_gpt::model_config memory_efficient(nano_gpt::model_config config) {
  config.memory_efficient = true;
  return config;
}

struct tiny_run {
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
  nano_gpt::random_stream random{11};
  nano_gpt::gpt<double> model;
  nano_gpt::batch batch = nano_gpt::corpus{"abcdeedcbabdacead"}.sample(3, 3, random, memory);

  explicit tiny_run(const nano_gpt::model_config& config = tiny) : model{config, random, memory} {
    // Of order 1, so that no gradient is lost in rounding, and no gain, shift or bias has its special initial value.
    for (auto* parameter : model.parameters()) parameter->fill_normal(random, 0.5);
  }
};

/// Central difference of the loss in one element.
double slope(tiny_run& run, double& element, double distance) {
  const double middle = element;
  element = middle + distance;
  const double above = run.model.forward(run.batch);
  element = middle - distance;
  const double below = run.model.forward(run.batch);
  element = middle;
  return (above - below) / (2 * distance);
}

}  // namespace

TEST_CASE("nano_gpt: the gradient of every parameter is the slope of the loss") {
  const nano_gpt::model_config config =
      GENERATE(tiny, tied(tiny), memory_efficient(tiny), tiny_llama, tied(tiny_llama), memory_efficient(tiny_llama));
  INFO((config.is_llama() ? "llama" : "gpt2")
       << (config.tied_output ? ", tied" : "") << (config.memory_efficient ? ", memory-efficient" : ""));
  tiny_run run{config};
  REQUIRE(std::isfinite(run.model.forward(run.batch)));
  run.model.backward();

  // The cube root of the precision (2^-52) balances both errors of a central difference: truncation, distance^2 / 6 times a
  // third derivative, is 6e-12 times that; rounding, some 2^-52 * loss / distance with tens of operations' errors in the loss,
  // is below 1e-9. A third derivative of 1e4 (inverse deviations of about 2, twice five layers deep) still stays below 1e-7.
  constexpr double distance = 6e-6;
  constexpr double tolerance = 1e-7;
  for (auto* parameter : run.model.parameters()) {
    const std::span<double> values = parameter->value().elements();
    const std::span<const double> gradient = parameter->accumulated_gradient().elements();
    double largest = 0;
    for (std::size_t index = 0; index < values.size(); ++index) {
      INFO(parameter->name() << "[" << index << "]");
      REQUIRE(std::abs(slope(run, values[index], distance) - gradient[index]) < tolerance);
      largest = std::max(largest, std::abs(gradient[index]));
    }
    INFO(parameter->name());
    REQUIRE(largest > 1000 * tolerance);  // or else agreement would say nothing
  }
}

TEST_CASE("nano_gpt: gradients of two backward passes add up") {
  tiny_run once;
  (void)once.model.forward(once.batch);
  once.model.backward();
  tiny_run twice;
  for (int pass = 0; pass < 2; ++pass) {
    (void)twice.model.forward(twice.batch);
    twice.model.backward();
  }
  const auto single = once.model.parameters();
  const auto sum = twice.model.parameters();
  for (std::size_t index = 0; index < single.size(); ++index) {
    const std::span<const double> one = single[index]->accumulated_gradient().elements();
    const std::span<const double> two = sum[index]->accumulated_gradient().elements();
    for (std::size_t element = 0; element < one.size(); ++element) {
      INFO(single[index]->name() << "[" << element << "]");
      REQUIRE(std::abs(two[element] - 2 * one[element]) < 1e-13);
    }
  }
}

TEST_CASE("nano_gpt: micro-batches with their share of the loss have the gradient of the whole batch") {
  tiny_run whole{tiny_llama};
  const nano_gpt::batch batch = nano_gpt::corpus{"abcdeedcbabdacead"}.sample(4, 3, whole.random, whole.memory);
  (void)whole.model.forward(batch);
  whole.model.backward();
  tiny_run parts{tiny_llama};
  for (const std::size_t first : {0U, 2U}) {
    nano_gpt::batch half{{{2, 3}, parts.memory}, {{2, 3}, parts.memory}};
    std::copy_n(batch.tokens.data() + first * 3, 6, half.tokens.data());
    std::copy_n(batch.targets.data() + first * 3, 6, half.targets.data());
    (void)parts.model.forward(half);
    parts.model.backward(0.5);
  }
  const auto expected = whole.model.parameters();
  const auto actual = parts.model.parameters();
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const std::span<const double> one = expected[index]->accumulated_gradient().elements();
    const std::span<const double> sum = actual[index]->accumulated_gradient().elements();
    for (std::size_t element = 0; element < one.size(); ++element) {
      INFO(expected[index]->name() << "[" << element << "]");
      REQUIRE(std::abs(sum[element] - one[element]) < 1e-13);
    }
  }
}

TEST_CASE("nano_gpt: a position's loss does not depend on later tokens") {
  tiny_run run{GENERATE(tiny, tiny_llama)};
  const auto loss_of = [&](std::size_t length, std::int32_t last_target) {
    const std::int32_t tokens[] = {1, 2, 3};
    nano_gpt::batch batch{{{1, length}, run.memory}, {{1, length}, run.memory}};
    std::copy_n(tokens, length, batch.tokens.data());
    std::ranges::fill(batch.targets.elements(), 0);
    batch.targets.elements().back() = last_target;
    return run.model.forward(batch) * static_cast<double>(length);
  };
  // The last position's probabilities sum to 1 over all its targets, so sum(exp(-loss)) = exp(-loss of the positions before).
  double sum = 0;
  for (std::int32_t target = 0; target < 5; ++target) sum += std::exp(-loss_of(3, target));
  REQUIRE(std::abs(-std::log(sum) - loss_of(2, 0)) < 1e-13);
}

}  // namespace memprof_tests::examples_nano_gpt_gradients
