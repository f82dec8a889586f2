#include "captures.hpp"

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_values {

using Catch::Matchers::ContainsSubstring;

// Small tensors that are made of data, and of each other, hold what the program computes; of all others nothing is known.

namespace {

std::vector<std::int64_t> values_of(const torch::Tensor& integers) {
  const auto contiguous = integers.contiguous();
  const auto* const first = contiguous.const_data_ptr<std::int64_t>();
  return {first, first + contiguous.numel()};
}

/// Large enough that nothing is known of it.
torch::Tensor unknown_numbers() { return torch::randn({100, 1000}); }

}  // namespace

TEST_CASE("torch no_dispatch: small tensors have the values that the program computes") {
  auto capture = begin_no_dispatch();
  CHECK(torch::ones({1}).item<float>() == 1.0F);
  CHECK(torch::full({}, 7, torch::kLong).item<std::int64_t>() == 7);
  CHECK(torch::tensor({1.5, 2.5}).sum().item<double>() == 4.0);
  CHECK(torch::ones({1}, torch::kBool).item<bool>());
  CHECK(torch::ones({1}).is_nonzero());
  CHECK(torch::equal(torch::ones({2, 2}), torch::ones({2, 2})));
  CHECK_FALSE(torch::equal(torch::ones({2, 2}), torch::zeros({2, 2})));
  CHECK(values_of(torch::arange(10).slice(0, 2, 8, 2)) == std::vector<std::int64_t>{2, 4, 6});
  auto counter = torch::zeros({1}, torch::kLong);
  for (int step = 0; step < 5; ++step) counter += 1;
  CHECK(counter.item<std::int64_t>() == 5);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(reads_of(capture.profile()).empty());
}

TEST_CASE("torch no_dispatch: random numbers and permutations are real, also long ones of integers") {
  auto capture = begin_no_dispatch();
  auto order = values_of(torch::randperm(100'000));
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> expected(100'000);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  const auto labels = torch::randint(10, {1000}, torch::kLong);
  CHECK(labels.max().item<std::int64_t>() <= 9);
  CHECK(labels.max().item<std::int64_t>() > 0);
  CHECK(torch::randn({100}).std().item<float>() > 0.5F);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(reads_of(capture.profile()).empty());
}

TEST_CASE("torch no_dispatch: what is written in place of unknown values is known, and what hangs on them is not") {
  auto capture = begin_no_dispatch();
  const auto large = unknown_numbers();
  auto sums = large.sum(1);  // small, and unknown
  sums.fill_(3);
  CHECK(sums[4].item<float>() == 3.0F);
  sums.zero_();
  CHECK(sums[4].item<float>() == 0.0F);
  sums.copy_(torch::arange(100));
  CHECK(sums[4].item<float>() == 4.0F);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(reads_of(capture.profile()).empty());
  auto weights = torch::ones({100});
  weights.add_(large.sum(1));
  (void)weights[0].item<float>();
  CHECK(reads_of(capture.profile()).size() == 1);
}

TEST_CASE("torch no_dispatch: a value that is read and not known is listed with its operation") {
  auto capture = begin_no_dispatch();
  const auto loss = unknown_numbers().square().mean();
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto scope = memprof::track_operation<"early stopping">();
    if (loss.item<float>() < 0.0F) break;
  }
  CHECK_FALSE((loss > 1).item<bool>());
  auto reads = reads_of(capture.profile());
  REQUIRE(reads.size() == 2);
  if (reads[0].operation.empty()) std::swap(reads[0], reads[1]);
  CHECK(reads[0] == memprof::unknown_read{"aten::item", "early stopping", 3, 0});
  CHECK(reads[1] == memprof::unknown_read{"aten::item", "", 1, 1});
  CHECK_THAT(memprof::to_text(capture.profile()), ContainsSubstring("3 reads of numbers unknown to the simulation"));
}

TEST_CASE("torch no_dispatch: a number that is read leaves the profile exact, a truth value or an integer does not") {
  const auto profile_of = [](auto read) {
    auto capture = begin_no_dispatch();
    {
      const auto scope = memprof::track_operation<"reading">();
      read(unknown_numbers());
    }
    capture.end();
    return capture.profile();
  };
  const memprof::profile prints = profile_of([](const torch::Tensor& large) { (void)large.mean().item<double>(); });
  CHECK(prints.exact);
  CHECK_FALSE(prints.provenance.assumed);
  REQUIRE(reads_of(prints).size() == 1);
  CHECK(reads_of(prints)[0] == memprof::unknown_read{"aten::item", "reading", 1, 0});
  CHECK_THAT(memprof::to_text(prints), ContainsSubstring("Accuracy  exact: "));

  const auto check_steers = [&](const char* name, auto read) {
    INFO(name);
    const memprof::profile found = profile_of(read);
    CHECK_FALSE(found.exact);
    CHECK(found.provenance.assumed);
    REQUIRE(reads_of(found).size() == 1);
    CHECK(reads_of(found)[0] == memprof::unknown_read{name, "reading", 1, 1});
    CHECK_THAT(memprof::to_text(found), ContainsSubstring(std::string{"not exact: "} + name + " in reading read what"));
  };
  check_steers("aten::item", [](const torch::Tensor& large) { (void)torch::isfinite(large).all().item<bool>(); });
  check_steers("aten::item", [](const torch::Tensor& large) { (void)large.argmax().item<std::int64_t>(); });
  check_steers("aten::is_nonzero", [](const torch::Tensor& large) { (void)large.sum().is_nonzero(); });
  check_steers("aten::equal", [](const torch::Tensor& large) { (void)torch::equal(large, large + 1); });
}

TEST_CASE("torch no_dispatch: LBFGS, whose steps hang on the loss, is listed") {
  auto capture = begin_no_dispatch();
  torch::nn::Linear layer(1000, 100);
  const auto input = torch::randn({64, 1000});
  torch::optim::LBFGS optimizer(layer->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(5));
  const auto closure = [&] {
    optimizer.zero_grad();
    auto loss = layer(input).square().mean();
    loss.backward();
    return loss;
  };
  {
    const auto scope = memprof::track_operation<"search">();
    optimizer.step(closure);
  }
  const memprof::vector<memprof::unknown_read> reads = reads_of(capture.profile());
  REQUIRE_FALSE(reads.empty());
  for (const memprof::unknown_read& read : reads) {
    INFO(read.name);
    CHECK(read.operation == "search");
    CHECK(read.count > 0);
  }
}

TEST_CASE("torch no_dispatch: nothing is known of convolutions of what is not known, and the profile lists their reads") {
  auto capture = begin_no_dispatch();
  const auto image = unknown_numbers().view({10, 100, 10, 10}).requires_grad_();
  const auto forwards = torch::full({1, 100, 4, 4}, 0.5).requires_grad_();
  const auto backwards = torch::full({100, 1, 4, 4}, 0.5).requires_grad_();
  std::int64_t expected = 0;
  const auto check_unknown = [&](const torch::Tensor& tensor) {
    (void)tensor.flatten()[0].item<float>();
    const memprof::vector<memprof::unknown_read> reads = reads_of(capture.profile());
    std::int64_t count = 0;
    for (const memprof::unknown_read& read : reads) count += read.count;
    CHECK(count == ++expected);
  };
  for (const auto& output : {torch::conv2d(image, forwards), torch::conv_transpose2d(image, backwards)}) {
    check_unknown(output);
    output.sum().backward();
  }
  check_unknown(forwards.grad());
  check_unknown(backwards.grad());
  // Of what is known, the result is known.
  const auto known = torch::conv_transpose2d(torch::ones({1, 2, 3, 3}), torch::full({2, 1, 2, 2}, 0.5));
  CHECK(known[0][0][1][1].item<float>() == 4.0F);
  check_unknown(image.grad());
}

TEST_CASE("torch no_dispatch: small problems train for real, to the same numbers") {
  const auto train = [] {
    torch::manual_seed(3);
    torch::nn::Linear layer(8, 4);
    torch::optim::SGD optimizer(layer->parameters(), 0.1);
    const auto input = torch::randn({16, 8});
    double last = 0;
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      const auto loss = (layer(input) - 1).square().mean();
      loss.backward();
      optimizer.step();
      last = loss.item<double>();
    }
    return last;
  };
  const double real = train();
  auto capture = begin_no_dispatch();
  CHECK(train() == real);
  CHECK(estimates_of(capture.profile()).empty());
  CHECK(reads_of(capture.profile()).empty());
}

}  // namespace memprof_tests::torch_no_dispatch_values
