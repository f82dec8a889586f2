#include "captures.hpp"

#include <memprof/backend/torch/simulation/read_memory.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/record/event_sink.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace memprof_tests::torch_no_dispatch_reads {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

// What a program gets that reads values which the simulation does not have: what follows from ordinary numbers.

namespace {

/// Large enough that nothing is known of it.
torch::Tensor unknown_numbers(const torch::Device& device = torch::kCPU) { return torch::randn({100, 1000}, device); }

bool holds(const torch::Tensor& condition) { return condition.item<bool>(); }

}  // namespace

TEST_CASE("torch no_dispatch: unknown numbers are finite, so that a scaler of gradients skips no step") {
  for (const torch::Device device : {torch::Device{torch::kCPU}, torch::Device{torch::kCUDA}}) {
    INFO(device);
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    const auto gradient = unknown_numbers(device);
    CHECK(holds(torch::isfinite(gradient).all()));
    CHECK(torch::isfinite(gradient).all().is_nonzero());
    CHECK_FALSE(holds(torch::isnan(gradient).any()));
    CHECK_FALSE(holds(torch::isinf(gradient).any()));
    CHECK_FALSE(holds((gradient != gradient).any()));
    CHECK(holds(torch::isfinite(gradient.sum())));
    CHECK(holds(torch::isfinite(torch::stack({gradient.norm(), gradient.square().sum().sqrt()})).all()));
    CHECK(torch::isfinite(gradient).sum().item<std::int64_t>() == 100'000);
    CHECK_FALSE(holds(torch::isfinite(gradient / torch::zeros_like(gradient)).all()));
    CHECK(holds(torch::isfinite(gradient)[3][4]));
    CHECK(std::isfinite(gradient.abs().max().item<float>()));
    CHECK_FALSE(capture.profile().exact);
  }
}

TEST_CASE("torch no_dispatch: what follows from unknown numbers agrees with itself") {
  auto capture = begin_no_dispatch();
  const auto numbers = unknown_numbers();
  const auto other = unknown_numbers();
  const auto number = numbers.mean().item<double>();
  CHECK(number > 0);
  CHECK(number < 1);
  CHECK(numbers[7][8].item<float>() == static_cast<float>(number));
  CHECK((-numbers).max().item<float>() == static_cast<float>(-number));
  CHECK(std::abs((numbers * 2 + 1).mean().item<double>() - (2 * number + 1)) < 1e-6);
  CHECK(std::abs(numbers.flatten().dot(-numbers.flatten()).item<double>() / (-100'000 * number * number) - 1) < 1e-6);
  CHECK(std::abs(numbers.norm().item<double>() / (std::sqrt(100'000) * number) - 1) < 1e-6);
  CHECK(holds((numbers.sum() == numbers.sum())));
  CHECK_FALSE(holds((numbers == other).any()));
  auto zeros = torch::zeros({100, 1000});
  CHECK(zeros.sum().item<float>() == 0);
  zeros.fill_(3);
  CHECK(zeros.max().item<float>() == 3);
  CHECK(torch::ones({100, 1000}, torch::kBool).all().item<bool>());
}

TEST_CASE("torch no_dispatch: a part that is written leaves the rest of a tensor as it was") {
  auto capture = begin_no_dispatch();
  const auto numbers = unknown_numbers();
  const auto number = numbers.max().item<float>();
  auto squares = numbers.square();
  squares.slice(0, 0, 50).fill_(2);
  CHECK(std::abs(squares.slice(0, 50).max().item<float>() - number * number) < 1e-6);
  auto gathered = torch::zeros({200, 1000});  // as optimizers do with gradients
  gathered.slice(0, 0, 100).copy_(numbers);
  CHECK(gathered.abs().max().item<float>() == number);
  auto mask = numbers > 0;
  mask.slice(0, 0, 20).fill_(false);
  CHECK(mask.nonzero().size(0) == 40'000);
}

TEST_CASE("torch no_dispatch: a loss that is not known falls from step to step") {
  auto capture = begin_no_dispatch();
  torch::nn::Linear layer(1000, 100);
  const auto input = torch::randn({64, 1000});
  double last = HUGE_VAL;
  for (int step = 0; step < 5; ++step) {
    layer->zero_grad();
    const auto loss = layer(input).square().mean();
    loss.backward();
    const double found = loss.item<double>();
    CHECK(found < last);
    CHECK(found > 0);
    last = found;
  }
}

TEST_CASE("torch no_dispatch: LBFGS takes all its steps, as in a real run") {
  const auto evaluations = [] {
    torch::manual_seed(1);
    torch::nn::Linear layer(1000, 100);
    const auto input = torch::randn({64, 1000});
    torch::optim::LBFGS optimizer(layer->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(7));
    int count = 0;
    const auto closure = [&] {
      ++count;
      optimizer.zero_grad();
      auto loss = layer(input).square().mean();
      loss.backward();
      return loss;
    };
    for (int step = 0; step < 2; ++step) optimizer.step(closure);
    return count;
  };
  const int real = evaluations();
  auto capture = begin_no_dispatch();
  CHECK(evaluations() == real);
}

TEST_CASE("torch no_dispatch: a generation on claimed CUDA ends at its greatest length") {
  for (const torch::Device device : {torch::Device{torch::kCPU}, torch::Device{torch::kCUDA}}) {
    INFO(device);
    auto capture = begin_no_dispatch({.device = {"cuda"}});
    const torch::TensorOptions integers = torch::TensorOptions(device).dtype(torch::kLong);
    constexpr std::int64_t vocabulary = 50'000;
    constexpr std::int64_t most = 16;
    const auto weight = torch::randn({vocabulary, 64}, device);
    auto tokens = torch::zeros({2, 1}, integers);
    auto unfinished = torch::ones({2}, integers);
    int steps = 0;
    while (++steps < 100) {
      const auto last = torch::embedding(weight, tokens.slice(1, -1)).squeeze(1);
      const auto next = last.matmul(weight.t()).argmax(-1);
      tokens = torch::cat({tokens, next.unsqueeze(1)}, 1);
      const auto is_full = torch::full({2}, tokens.size(1) >= most, integers.dtype(torch::kBool));
      unfinished = unfinished * (is_full.logical_or(next == vocabulary - 1)).logical_not();
      if (unfinished.max().item<std::int64_t>() == 0) break;
    }
    CHECK(tokens.size(1) == most);
    CHECK(steps == most - 1);
  }
}

TEST_CASE("torch no_dispatch: a loop that waits for an unknown value ends with a message") {
  auto capture = begin_no_dispatch();
  const auto numbers = unknown_numbers();
  memprof::set_torch_read_limit(50);
  int rounds = 0;
  const auto wait = [&] {
    const auto scope = memprof::track_operation<"waiting">();
    while (!holds(torch::isnan(numbers).any())) ++rounds;
  };
  CHECK_THROWS_MATCHES(
      wait(), c10::Error,
      MessageMatches(ContainsSubstring("'aten::item' in 'waiting' has read") &&
                     ContainsSubstring("50 times without any progress") && ContainsSubstring("set_torch_read_limit")));
  CHECK(rounds == 49);
  // Another place that reads for the first time is progress.
  for (int step = 0; step < 49; ++step) (void)numbers.sum().item<float>();
  {
    const auto scope = memprof::track_operation<"elsewhere">();
    (void)numbers.sum().item<float>();
  }
  CHECK_NOTHROW(numbers.sum().item<float>());
  memprof::set_torch_read_limit(100'000);
  CHECK_THROWS_AS(memprof::set_torch_read_limit(0), memprof::error);
}

TEST_CASE("torch no_dispatch: a training that ends by its loss ends with a message, whatever else it reads") {
  auto capture = begin_no_dispatch();
  memprof::set_torch_read_limit(20);
  torch::nn::Linear layer(1000, 100);
  const auto input = torch::randn({64, 1000});
  const auto loss_of_step = [&] {
    layer->zero_grad();
    const auto loss = layer(input).square().mean();
    loss.backward();
    return loss;
  };
  int steps = 0;
  const auto train = [&](const auto& goes_on) {
    steps = 0;
    for (auto loss = loss_of_step(); goes_on(loss); loss = loss_of_step()) {
      ++steps;
      const auto scope = memprof::track_operation<"log">();
      (void)loss.template item<float>();
    }
  };
  const auto fails = MessageMatches(ContainsSubstring("has read a value that the simulation does not know 20 times"));
  CHECK_THROWS_MATCHES(train([](const torch::Tensor& loss) { return loss.item<double>() > 1e-9; }), c10::Error, fails);
  CHECK(steps == 20);  // the first to be logged was progress for the other
  CHECK_THROWS_MATCHES(train([](const torch::Tensor& loss) { return (loss > 1e-9).is_nonzero(); }), c10::Error, fails);
  memprof::set_torch_read_limit(100'000);
}

TEST_CASE("torch no_dispatch: what says that it reads memory finds what item() returns, and is listed") {
  auto capture = begin_no_dispatch();
  const memprof::extend::label reads = memprof::extend::event_sink{}.label_of("reads memory");
  const auto read = [&](const torch::Tensor& tensor) {
    memprof::detail::read_memory(tensor, reads);
    return tensor;
  };
  const auto numbers = unknown_numbers();
  const auto number = numbers[3][4].item<float>();
  CHECK(number > 0);
  for (const auto& same : {numbers, numbers.slice(1, 1, 1000, 3), numbers.t(), numbers.view({-1})}) {
    const auto found = read(same);
    CHECK(found.data_ptr<float>()[0] == number);
    CHECK(found.data_ptr<float>()[99'000] == number);
  }
  CHECK(static_cast<float>(read(numbers.to(torch::kDouble)).data_ptr<double>()[7]) == number);
  CHECK(static_cast<float>(read(numbers.to(torch::kHalf)).data_ptr<c10::Half>()[7]) == static_cast<float>(c10::Half{number}));
  CHECK(read(numbers.slice(0, 0, 10).clone()).data_ptr<float>()[9'999] == number);  // small
  CHECK(read(torch::isfinite(numbers)).data_ptr<bool>()[99'999]);                   // small, as truth values are integers
  CHECK(read(numbers.argmax(1)).data_ptr<std::int64_t>()[99] == 0);                 // a valid index
  CHECK(read(torch::ones({3})).data_ptr<float>()[2] == 1);                          // known: not listed
  CHECK(read(torch::empty({0})).numel() == 0);
  const memprof::vector<memprof::unknown_read> found = reads_of(capture.profile());
  const auto count = [&](std::int64_t steers) {
    std::int64_t sum = 0;
    for (const memprof::unknown_read& row : found) sum += row.name == "reads memory" && row.steers == steers ? row.count : 0;
    return sum;
  };
  CHECK(count(0) == 7);
  CHECK(count(1) == 2);
  CHECK_FALSE(capture.profile().exact);
}

TEST_CASE("torch no_dispatch: what operators write after memory was read is there") {
  auto capture = begin_no_dispatch();
  const memprof::extend::label reads = memprof::extend::event_sink{}.label_of("reads memory");
  auto numbers = unknown_numbers();
  numbers.data_ptr<float>()[5] = 2;
  memprof::detail::read_memory(numbers, reads);
  CHECK(numbers.data_ptr<float>()[5] == 2);  // the program's own
  CHECK(numbers.data_ptr<float>()[4] != 0);
  numbers.fill_(3);
  CHECK(numbers.max().item<float>() == 3);
  CHECK(numbers[0][4].item<float>() == 3);
  memprof::detail::read_memory(numbers, reads);
  CHECK(numbers.data_ptr<float>()[4] == 3);
  numbers.zero_();
  memprof::detail::read_memory(numbers, reads);
  CHECK(numbers.data_ptr<float>()[4] == 0);
  CHECK(capture.profile().exact);  // numbers, which programs print
  const memprof::vector<memprof::unknown_read> found = reads_of(capture.profile());
  CHECK(std::count(found.begin(), found.end(), memprof::unknown_read{"reads memory", "", 3, 0}) == 1);
}

}  // namespace memprof_tests::torch_no_dispatch_reads
