#include <nano_gpt/kernels.hpp>
#include <nano_gpt/random_stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using Catch::Matchers::WithinAbs;
using nano_gpt::matrix;

/// Small integers: their products and sums are exact in float, so results can be compared with ==.
std::vector<float> random_integers(std::size_t count, nano_gpt::random_stream& random) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.below(21)) - 10.0F;
  return numbers;
}

matrix<float> dense(std::vector<float>& numbers, std::size_t rows, std::size_t columns) {
  return {numbers.data(), rows, columns, columns};
}

void require_product(matrix<float> a, matrix<float> b, const std::vector<float>& before, matrix<float> c) {
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.columns; ++j) {
      float expected = before[i * c.columns + j];
      for (std::size_t k = 0; k < a.columns; ++k) expected += a.at(i, k) * b.at(k, j);
      REQUIRE(c.at(i, j) == expected);
    }
  }
}

}  // namespace

TEST_CASE("nano_gpt: a matrix product is that of the definition, whatever remains of its blocks") {
  nano_gpt::random_stream random{1};
  for (const std::size_t rows : {1U, 2U, 5U}) {
    for (const std::size_t inner : {1U, 3U, 4U, 7U, 8U}) {
      for (const std::size_t columns : {1U, 4U, 9U}) {
        std::vector<float> a = random_integers(rows * inner, random);
        std::vector<float> b = random_integers(inner * columns, random);
        std::vector<float> c = random_integers(rows * columns, random);
        const std::vector<float> before = c;
        nano_gpt::add_product(dense(a, rows, inner), dense(b, inner, columns), dense(c, rows, columns));
        require_product(dense(a, rows, inner), dense(b, inner, columns), before, dense(c, rows, columns));
      }
    }
  }
}

TEST_CASE("nano_gpt: a transposed view and a transposed copy give the same product") {
  nano_gpt::random_stream random{2};
  std::vector<float> a = random_integers(std::size_t{6} * 5, random);
  std::vector<float> b = random_integers(std::size_t{6} * 3, random);
  std::vector<float> from_view(std::size_t{5} * 3, 0.0F);
  std::vector<float> from_copy = from_view;
  std::vector<float> copy(a.size());
  nano_gpt::transpose(dense(a, 6, 5), dense(copy, 5, 6));
  nano_gpt::add_product(dense(a, 6, 5).transposed(), dense(b, 6, 3), dense(from_view, 5, 3));
  nano_gpt::add_product(dense(copy, 5, 6), dense(b, 6, 3), dense(from_copy, 5, 3));
  REQUIRE(from_view == from_copy);
  require_product(dense(copy, 5, 6), dense(b, 6, 3), std::vector<float>(from_view.size(), 0.0F), dense(from_view, 5, 3));
}

TEST_CASE("nano_gpt: softmax sees no future and sums to one") {
  constexpr std::size_t time = 5;
  std::vector<double> scores(time * time, 3.0);
  nano_gpt::causal_softmax(matrix<double>{scores.data(), time, time, time}, 0.5);
  for (std::size_t t = 0; t < time; ++t) {
    for (std::size_t s = 0; s < time; ++s) {
      // Equal scores share equally among the t + 1 columns that are past or present.
      const double expected = s <= t ? 1.0 / static_cast<double>(t + 1) : 0.0;
      REQUIRE_THAT(scores[t * time + s], WithinAbs(expected, 1e-15));
    }
  }
}

TEST_CASE("nano_gpt: softmax of huge scores stays finite") {
  std::vector<float> logits{1e30F, -1e30F, 0.0F};
  const std::vector<std::int32_t> target{1};
  const float loss = nano_gpt::cross_entropy(target, matrix<float>{logits.data(), 1, 3, 3});
  REQUIRE(logits == std::vector<float>{1.0F, 0.0F, 0.0F});
  REQUIRE(std::isfinite(loss));
}

TEST_CASE("nano_gpt: equal logits lose the logarithm of the vocabulary") {
  std::vector<double> logits(std::size_t{2} * 10, 4.0);
  const std::vector<std::int32_t> targets{0, 9};
  const double loss = nano_gpt::cross_entropy(targets, matrix<double>{logits.data(), 2, 10, 10});
  REQUIRE_THAT(loss, WithinAbs(std::log(10.0), 1e-14));
}

TEST_CASE("nano_gpt: layer normalisation gives each row mean 0 and variance 1") {
  nano_gpt::random_stream random{3};
  constexpr std::size_t rows = 3;
  constexpr std::size_t columns = 16;
  std::vector<double> x(rows * columns);
  for (double& element : x) element = 7.0 + 3.0 * random.normal();
  const std::vector<double> gain(columns, 1.0);
  const std::vector<double> shift(columns, 0.0);
  std::vector<double> means(rows);
  std::vector<double> inverse_deviations(rows);
  std::vector<double> out(x.size());
  nano_gpt::layer_norm_forward<double>({x.data(), rows, columns, columns}, gain, shift, means, inverse_deviations,
                                       {out.data(), rows, columns, columns});
  for (std::size_t i = 0; i < rows; ++i) {
    double sum = 0;
    double squares = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      sum += out[i * columns + j];
      squares += out[i * columns + j] * out[i * columns + j];
    }
    REQUIRE_THAT(sum / columns, WithinAbs(0.0, 1e-14));
    REQUIRE_THAT(squares / columns, WithinAbs(1.0, 1e-4));  // epsilon 1e-5 beside a variance of some 9 takes about 1e-6
  }
}

TEST_CASE("nano_gpt: GELU has the values of its definition and saturates without overflow") {
  const std::vector<double> x{0.0, 1.0, -1.0, 1000.0, -1000.0};
  std::vector<double> out(x.size());
  nano_gpt::gelu<double>(x, out);
  // 0.5 * (1 + tanh(sqrt(2 / pi) * 1.044715)) at 1; x * gate(x) + x * gate(-x) = x ties the values at 1 and -1.
  const double at_one = 0.5 * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * 1.044715));
  REQUIRE(out[0] == 0.0);
  REQUIRE_THAT(out[1], WithinAbs(at_one, 1e-15));
  REQUIRE_THAT(out[2], WithinAbs(at_one - 1.0, 1e-15));
  REQUIRE(out[3] == 1000.0);
  REQUIRE(out[4] == 0.0);
}

TEST_CASE("nano_gpt: the first AdamW step moves by the learning rate against the gradient's sign") {
  const nano_gpt::adamw_update<double> update{.learning_rate = 0.01,
                                              .beta1 = 0.9,
                                              .beta2 = 0.99,
                                              .correction1 = 1 - 0.9,
                                              .correction2 = 1 - 0.99,
                                              .epsilon = 0,
                                              .decay = 0.001};
  const std::vector<double> gradient{4.0, -0.25};
  std::vector<double> first(2, 0.0);
  std::vector<double> second(2, 0.0);
  std::vector<double> value{1.0, 1.0};
  nano_gpt::adamw_step<double>(update, gradient, first, second, value);
  // Both moments are corrected to g and g^2, so their ratio is the sign; decay takes a thousandth of the value besides.
  REQUIRE_THAT(value[0], WithinAbs(1.0 - 0.01 - 0.001, 1e-14));
  REQUIRE_THAT(value[1], WithinAbs(1.0 + 0.01 - 0.001, 1e-14));
}
