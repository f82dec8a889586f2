#include <memprof/memprof.hpp>

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/model.hpp>
#include <nano_gpt/optimizer.hpp>
#include <nano_gpt/random_stream.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::examples_nano_gpt_training {

namespace {

constexpr std::size_t batch_size = 4;

const std::string verse =
    "the rain in spain stays mainly in the plain; the train in the rain remains in the main. "
    "a pain in the brain, a stain in the grain, and again the same rain in the plain of spain. ";

/// Of single characters, in nats: no model that ignores the context can lose less.
double entropy_of_letters(const std::string& text) {
  std::map<char, double> counts;
  for (const char character : text) counts[character] += 1;
  double entropy = 0;
  for (const auto& [character, count] : counts) {
    const double share = count / static_cast<double>(text.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

nano_gpt::model_config small_model(const nano_gpt::corpus& corpus) {
  return {.vocabulary_size = corpus.vocabulary_size(), .seq_len = 16, .layers = 2, .heads = 2, .d_model = 16};
}

/// Keys and values of one head serve both.
nano_gpt::model_config small_llama(const nano_gpt::corpus& corpus) {
  nano_gpt::model_config config = small_model(corpus);
  config.architecture = nano_gpt::architecture::llama;
  config.kv_heads = 1;
  config.mlp_width = 40;
  return config;
}

template <class T>
std::vector<float> train(nano_gpt::model_config config, std::uint64_t seed, std::size_t steps,
                         std::pmr::memory_resource* memory) {
  const nano_gpt::corpus corpus{verse};
  nano_gpt::random_stream random{seed};
  nano_gpt::gpt<T> model{config, random, memory};
  nano_gpt::adamw<T> optimizer{model.parameters(), memory, {.learning_rate = 1e-2}};
  std::vector<float> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    const nano_gpt::batch batch = corpus.sample(batch_size, 16, random, memory);
    losses.push_back(model.forward(batch));
    model.backward();
    optimizer.step();
    optimizer.free_gradients();
  }
  return losses;
}

std::vector<float> train(std::uint64_t seed, std::size_t steps, std::pmr::memory_resource* memory) {
  return train<float>(small_model(nano_gpt::corpus{verse}), seed, steps, memory);
}

double mean(const std::vector<float>& numbers, std::size_t first, std::size_t last) {
  double sum = 0;
  for (std::size_t index = first; index < last; ++index) sum += numbers[index];
  return sum / static_cast<double>(last - first);
}

/// One training step under capture.
memprof::profile profile_of_one_step() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  const nano_gpt::corpus corpus{verse};
  nano_gpt::random_stream random{1};
  nano_gpt::gpt<float> model{small_model(corpus), random, &memory};
  capture.snapshot("MODEL_CREATION");
  nano_gpt::adamw<float> optimizer{model.parameters(), &memory};
  capture.snapshot("OPTIMIZER_CREATION");
  const nano_gpt::batch batch = corpus.sample(batch_size, 16, random, &memory);
  (void)model.forward(batch);
  capture.snapshot("FORWARD_PASS");
  model.backward();
  capture.snapshot("BACKWARD_PASS");
  optimizer.step();
  optimizer.free_gradients();
  capture.snapshot("OPTIMIZER_STEP");
  capture.end();
  return capture.profile();
}

/// 12 C^2 + 13 C a block, tables of V + T rows, a norm and the output layer; see checks/phases.cmake of the example.
std::int64_t parameter_bytes() {
  const auto vocabulary = static_cast<std::int64_t>(nano_gpt::corpus{verse}.vocabulary_size());
  return 4 * (2 * (12 * 16 * 16 + 13 * 16) + (vocabulary + 16) * 16 + 2 * 16 + 16 * vocabulary);
}

std::int64_t bytes_of(const memprof::live_set& live, std::string_view category) {
  for (const memprof::owned_bytes& row : live.by_category) {
    if (row.owner == category) return row.bytes;
  }
  return 0;
}

}  // namespace

TEST_CASE("nano_gpt: training starts at a guess and learns more than how frequent letters are") {
  const std::vector<float> losses = train(1, 150, std::pmr::new_delete_resource());
  const double guess = std::log(static_cast<double>(nano_gpt::corpus{verse}.vocabulary_size()));
  // Untrained logits have a variance of C * (0.5 / sqrt(C))^2 = 0.25. Half of that is lost on average; how the few different
  // targets fall shifts the loss by less than the deviation of one logit, 0.5.
  REQUIRE(std::abs(losses.front() - guess - 0.125) < 0.5);
  REQUIRE(mean(losses, 140, 150) < 0.8 * entropy_of_letters(verse));
}

TEMPLATE_TEST_CASE("nano_gpt: both architectures learn in every type that is dispatched", "", float, nano_gpt::bf16,
                   nano_gpt::fp16) {
  const nano_gpt::corpus corpus{verse};
  const bool is_llama = GENERATE(false, true);
  const nano_gpt::model_config config = is_llama ? small_llama(corpus) : small_model(corpus);
  const std::vector<float> losses = train<TestType>(config, 1, 150, std::pmr::new_delete_resource());
  REQUIRE(mean(losses, 140, 150) < 0.8 * entropy_of_letters(verse));
}

TEST_CASE("nano_gpt: recomputing activations changes no loss") {
  const nano_gpt::corpus corpus{verse};
  for (nano_gpt::model_config config : {small_model(corpus), small_llama(corpus)}) {
    const std::vector<float> kept = train<float>(config, 5, 4, std::pmr::new_delete_resource());
    config.memory_efficient = true;
    const std::vector<float> recomputed = train<float>(config, 5, 4, std::pmr::new_delete_resource());
    for (std::size_t step = 0; step < kept.size(); ++step) REQUIRE(std::abs(recomputed[step] - kept[step]) < 1e-5F);
  }
}

TEST_CASE("nano_gpt: a seed repeats the losses exactly, another one does not") {
  std::pmr::memory_resource* const memory = std::pmr::new_delete_resource();
  REQUIRE(train(5, 4, memory) == train(5, 4, memory));
  REQUIRE(train(5, 4, memory) != train(6, 4, memory));
}

TEST_CASE("nano_gpt: losses do not depend on what memory held before") {
  // Tensors start uninitialised: whatever is read before it is written would show here.
  class filled_memory : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      void* const address = std::pmr::new_delete_resource()->allocate(bytes, alignment);
      std::fill_n(static_cast<unsigned char*>(address), bytes, static_cast<unsigned char>(0xff));  // not-a-number
      return address;
    }
    void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
      std::pmr::new_delete_resource()->deallocate(address, bytes, alignment);
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  };
  filled_memory memory;
  REQUIRE(train(5, 4, &memory) == train(5, 4, std::pmr::new_delete_resource()));
}

TEST_CASE("nano_gpt: parameters, moments and gradients have the bytes their number says") {
  const memprof::profile profile = profile_of_one_step();
  const memprof::space_profile& cpu = profile.space("cpu");
  REQUIRE(cpu.segments.size() == 6);
  REQUIRE(cpu.segments[0].segment_change == parameter_bytes());
  REQUIRE(cpu.segments[1].segment_change == 2 * parameter_bytes());
  REQUIRE(cpu.segments[4].segment_change == -parameter_bytes());
  // What the forward pass kept, the backward pass has freed, except for the batch (tokens and targets), leaving gradients.
  const auto batch_bytes = static_cast<std::int64_t>(2 * sizeof(std::int32_t) * batch_size * 16);
  REQUIRE(cpu.segments[2].segment_change + cpu.segments[3].segment_change == batch_bytes + parameter_bytes());
  REQUIRE(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("nano_gpt: memory peaks where the backward pass begins, and mostly in activations") {
  const memprof::profile profile = profile_of_one_step();
  const memprof::space_profile& cpu = profile.space("cpu");
  REQUIRE(profile.segments.at(static_cast<std::size_t>(cpu.peak_segment)).name == "BACKWARD_PASS");
  // The first layer to go backward adds its weights' gradient and a transposed copy of them; it frees its input before it makes
  // the gradient of its input, which is of the same size.
  const auto vocabulary = static_cast<std::int64_t>(nano_gpt::corpus{verse}.vocabulary_size());
  REQUIRE(cpu.peak_operation == "backward/lm_head");
  REQUIRE(cpu.cumulative_peak == cpu.segments[2].cumulative_current + 2 * 4 * 16 * vocabulary);
  const memprof::live_set& peak = cpu.live_at_peak;
  REQUIRE(bytes_of(peak, "parameter") == parameter_bytes());
  REQUIRE(bytes_of(peak, "optimizer_state") == 2 * parameter_bytes());
  REQUIRE(bytes_of(peak, "gradient") < parameter_bytes() / 2);
  REQUIRE(2 * bytes_of(peak, "activation") > peak.bytes);
  REQUIRE(bytes_of(peak, "other") == 0);
}

TEST_CASE("nano_gpt: every layer names its operation in both passes") {
  const memprof::profile profile = profile_of_one_step();
  for (const std::string pass : {"forward", "backward"}) {
    for (const std::string layer : {"embedding", "block/layer_norm", "block/attention/qkv", "block/attention/scores",
                                    "block/attention/softmax", "block/attention/projection", "block/residual", "block/mlp/expand",
                                    "block/mlp/gelu", "block/mlp/contract", "layer_norm", "lm_head", "cross_entropy"}) {
      INFO(pass + "/" + layer);
      REQUIRE(profile.find_operation(pass + "/" + layer) != nullptr);
    }
  }
  const memprof::operation_profile* const gelu = profile.find_operation("forward/block/mlp/gelu");
  REQUIRE(gelu->invocations == 2);  // layers
  REQUIRE(gelu->usage.at(0).self_allocated == 2 * 4 * static_cast<std::int64_t>(batch_size) * 16 * 64);
}

TEST_CASE("nano_gpt: parameters are annotated") {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  const nano_gpt::corpus corpus{verse};
  nano_gpt::random_stream random{1};
  const nano_gpt::gpt<float> model{small_model(corpus), random, &memory};
  capture.end();
  const memprof::live_block largest = capture.profile().space("cpu").live_at_peak.largest_blocks.at(0);
  REQUIRE(largest.bytes == 4 * 16 * 64);
  REQUIRE((largest.name == "blocks.0.mlp.expand.weight" || largest.name == "blocks.0.mlp.contract.weight" ||
           largest.name == "blocks.1.mlp.expand.weight" || largest.name == "blocks.1.mlp.contract.weight"));
  REQUIRE((largest.shape == "[16, 64]" || largest.shape == "[64, 16]"));
  REQUIRE(largest.dtype == "float32");
  REQUIRE(largest.category == memprof::category::parameter);
}

}  // namespace memprof_tests::examples_nano_gpt_training
