#include <nano_gpt/attention.hpp>
#include <nano_gpt/random_stream.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <memory_resource>

namespace memprof_tests::examples_nano_gpt_attention {

namespace {

constexpr std::size_t heads = 4;
constexpr std::size_t shared_heads = 2;
constexpr std::size_t width = 3;  // of a head
constexpr std::size_t channels = heads * width;

nano_gpt::model_config config_with(std::size_t kv_heads) {
  return {.seq_len = 5, .heads = heads, .d_model = channels, .kv_heads = kv_heads, .architecture = nano_gpt::architecture::llama};
}

struct layer {
  nano_gpt::random_stream random{7};
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
  nano_gpt::attention<double> attention;

  explicit layer(std::size_t kv_heads) : attention{"attention", config_with(kv_heads), nullptr, {&random, memory}} {}

  /// The weight from inputs to queries, keys and values: [channels, (heads + 2 * kv_heads) * width].
  [[nodiscard]] nano_gpt::matrix<double> qkv() { return weight(0); }
  [[nodiscard]] nano_gpt::matrix<double> projection() { return weight(1); }

 private:
  [[nodiscard]] nano_gpt::matrix<double> weight(std::size_t index) {
    nano_gpt::parameter_list<double> list;
    attention.list_parameters(list);
    return list.at(index)->value().as_matrix();
  }
};

nano_gpt::tensor<double> some_input(std::pmr::memory_resource* memory) {
  nano_gpt::tensor<double> x{{2, 5, channels}, memory};
  nano_gpt::random_stream random{3};
  for (double& element : x.elements()) element = random.normal();
  return x;
}

}  // namespace

TEST_CASE(
    "nano_gpt: heads that share keys and values do as ordinary heads with the same keys and values, neighbours in a group") {
  layer shared{shared_heads};
  layer ordinary{heads};
  for (std::size_t row = 0; row < channels; ++row) {
    const auto copy = [&](std::size_t to_head, std::size_t from_head) {
      for (std::size_t column = 0; column < width; ++column) {
        ordinary.qkv().at(row, to_head * width + column) = shared.qkv().at(row, from_head * width + column);
      }
    };
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t group = head / (heads / shared_heads);  // as in Ainslie et al., figure 2: neighbours share
      copy(head, head);
      copy(heads + head, heads + group);
      copy(2 * heads + head, heads + shared_heads + group);
    }
    for (std::size_t column = 0; column < channels; ++column) {
      ordinary.projection().at(row, column) = shared.projection().at(row, column);
    }
  }
  const nano_gpt::tensor<double> from_shared = shared.attention.forward(some_input(shared.memory));
  const nano_gpt::tensor<double> from_ordinary = ordinary.attention.forward(some_input(ordinary.memory));
  REQUIRE(from_shared.size() == from_ordinary.size());
  for (std::size_t index = 0; index < from_shared.size(); ++index) {
    INFO(index);
    REQUIRE(std::abs(from_shared.elements()[index] - from_ordinary.elements()[index]) < 1e-12);
  }
}

}  // namespace memprof_tests::examples_nano_gpt_attention
