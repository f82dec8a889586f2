#include <nano_gpt/kernels.hpp>
#include <nano_gpt/random_stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof_tests::examples_nano_gpt_kernels {

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

TEST_CASE("nano_gpt: RMS normalisation gives each row the mean square 1 and keeps its mean's sign") {
  nano_gpt::random_stream random{4};
  constexpr std::size_t columns = 16;
  std::vector<double> x(columns);
  for (double& element : x) element = 7.0 + 3.0 * random.normal();
  const std::vector<double> gain(columns, 2.0);
  std::vector<double> inverse_root(1);
  std::vector<double> out(columns);
  nano_gpt::rms_norm_forward<double>({x.data(), 1, columns, columns}, gain, inverse_root, {out.data(), 1, columns, columns});
  double squares = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    squares += out[j] * out[j];
    REQUIRE_THAT(out[j] / x[j], WithinAbs(2 * inverse_root[0], 1e-14));  // scaled alike, not shifted
  }
  REQUIRE_THAT(squares / columns, WithinAbs(4.0, 1e-5));  // gain^2; epsilon 1e-5 beside a mean square of some 58
}

TEST_CASE("nano_gpt: rotated queries and keys meet at their distance, and turning back restores them") {
  constexpr std::size_t time = 6;
  constexpr std::size_t pairs = 2;
  std::vector<double> cosines(time * pairs);
  std::vector<double> sines(time * pairs);
  const matrix<double> cosine_table{cosines.data(), time, pairs, pairs};
  const matrix<double> sine_table{sines.data(), time, pairs, pairs};
  nano_gpt::fill_rotary_tables(cosine_table, sine_table);
  REQUIRE_THAT(cosines[3 * pairs + 0], WithinAbs(std::cos(3.0), 1e-15));
  REQUIRE_THAT(sines[3 * pairs + 1], WithinAbs(std::sin(3.0 / 100), 1e-15));  // 10000^(1/2)

  const std::vector<double> query{0.3, -1.2, 0.7, 2.0};
  const std::vector<double> key{-0.5, 0.4, 1.1, 0.2};
  std::vector<double> queries;
  std::vector<double> keys;
  for (std::size_t t = 0; t < time; ++t) {
    queries.insert(queries.end(), query.begin(), query.end());
    keys.insert(keys.end(), key.begin(), key.end());
  }
  const matrix<double> query_rows{queries.data(), time, 2 * pairs, 2 * pairs};
  const matrix<double> key_rows{keys.data(), time, 2 * pairs, 2 * pairs};
  nano_gpt::rotate_pairs<double>(cosine_table, sine_table, nano_gpt::rotation::forward, query_rows);
  nano_gpt::rotate_pairs<double>(cosine_table, sine_table, nano_gpt::rotation::forward, key_rows);
  const auto product = [&](std::size_t at, std::size_t with) {
    double sum = 0;
    for (std::size_t j = 0; j < 2 * pairs; ++j) sum += query_rows.at(at, j) * key_rows.at(with, j);
    return sum;
  };
  REQUIRE_THAT(product(5, 3), WithinAbs(product(2, 0), 1e-14));
  REQUIRE(std::abs(product(5, 3) - product(5, 2)) > 0.01);
  nano_gpt::rotate_pairs<double>(cosine_table, sine_table, nano_gpt::rotation::backward, query_rows);
  for (std::size_t j = 0; j < 2 * pairs; ++j) REQUIRE_THAT(query_rows.at(5, j), WithinAbs(query[j], 1e-15));
}

TEST_CASE("nano_gpt: SwiGLU has the values of its definition") {
  std::vector<double> x{1.0, -2.0, 1000.0, 3.0, 5.0, 7.0};  // a row of three gates and what they gate
  std::vector<double> out(3);
  nano_gpt::swiglu<double>({x.data(), 1, 6, 6}, {out.data(), 1, 3, 3});
  REQUIRE_THAT(out[0], WithinAbs(3.0 / (1.0 + std::exp(-1.0)), 1e-15));
  REQUIRE_THAT(out[1], WithinAbs(-2.0 * 5.0 / (1.0 + std::exp(2.0)), 1e-15));
  REQUIRE(out[2] == 7000.0);
}

TEST_CASE("nano_gpt: sums of stored types are complete before they are rounded") {
  // Adding 1 to 256 in bf16 gives 256 again: it has 8 bits. 300 terms show whether sums are kept in float.
  using nano_gpt::bf16;
  constexpr std::size_t terms = 300;
  std::vector<bf16> ones(terms * 3, bf16(1.0F));
  std::vector<bf16> product(9, bf16(0.0F));
  std::vector<bf16> sums(3, bf16(0.0F));
  const matrix<bf16> tall{ones.data(), terms, 3, 3};
  nano_gpt::add_product<bf16>(tall.transposed(), tall, {product.data(), 3, 3, 3});
  nano_gpt::add_rows<bf16>(tall, sums);
  for (const bf16 element : product) REQUIRE(float{element} == 300.0F);
  for (const bf16 element : sums) REQUIRE(float{element} == 300.0F);
}

TEST_CASE("nano_gpt: a product of stored types is that of the definition, whatever remains of its tiles") {
  nano_gpt::random_stream random{5};
  for (const std::size_t rows : {1U, 8U, 11U}) {
    for (const std::size_t columns : {1U, 64U, 70U}) {
      constexpr std::size_t inner = 3;
      std::vector<float> a = random_integers(rows * inner, random);
      std::vector<float> b = random_integers(inner * columns, random);
      std::vector<float> c = random_integers(rows * columns, random);
      const std::vector<nano_gpt::fp16> stored_a(a.begin(), a.end());
      const std::vector<nano_gpt::fp16> stored_b(b.begin(), b.end());
      std::vector<nano_gpt::fp16> stored_c(c.begin(), c.end());
      nano_gpt::add_product<nano_gpt::fp16>({stored_a.data(), rows, inner, inner}, {stored_b.data(), inner, columns, columns},
                                            {stored_c.data(), rows, columns, columns});
      nano_gpt::add_product(dense(a, rows, inner), dense(b, inner, columns), dense(c, rows, columns));
      REQUIRE(std::vector<float>(stored_c.begin(), stored_c.end()) == c);  // integers below 2048 are exact in fp16
    }
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

}  // namespace memprof_tests::examples_nano_gpt_kernels
