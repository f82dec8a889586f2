// Measures what a capture adds to an allocation and free, to an operator, to small operators with their backward pass, and to a
// training step of a GPT as large as GPT-2. Beside it, what libtorch itself takes to call an observer that does nothing.
//
// All variants run in turn in each round, each round starting with another one. Differences are taken within a round, so that a
// machine that slows down affects all of them. Times are CPU time of the process.

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <torch_gpt/model.hpp>

#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

enum class variant { off, observed, idle, counting, operations, tracked };
constexpr std::array<std::string_view, 6> variant_names{"off",           "an observer that does nothing",
                                                        "no capture",    "torch_allocations",
                                                        "torch_backend", "torch_backend and track_pytorch_ops"};

/// Asks libtorch for what `torch_backend` asks for, and ignores it.
at::CallbackHandle add_empty_observer() {
  return at::addGlobalCallback(
      at::RecordFunctionCallback{[](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
                                 [](const at::RecordFunction&, at::ObserverContext*) {}}
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

/// Keeps a variant active until the end of the scope.
class running {
 public:
  explicit running(variant wanted) {
    switch (wanted) {
      case variant::off: break;
      case variant::observed: observer_ = add_empty_observer(); break;
      case variant::idle: memprof::detail::torch_cpu_allocator::instance().install(); break;
      case variant::counting: capture_.emplace(memprof::begin_capture<memprof::torch_allocations>()); break;
      case variant::operations: capture_.emplace(memprof::begin_capture<memprof::torch_backend>()); break;
      case variant::tracked:
        capture_.emplace(memprof::begin_capture<memprof::torch_backend>());
        ops_.emplace();
        break;
    }
  }
  running(const running&) = delete;
  running& operator=(const running&) = delete;
  ~running() {
    ops_.reset();
    capture_.reset();
    if (observer_.has_value()) at::removeCallback(*observer_);
    memprof::detail::torch_cpu_allocator::instance().end();
  }

 private:
  std::optional<memprof::capture_guard> capture_;
  std::optional<memprof::pytorch_ops_guard> ops_;
  std::optional<at::CallbackHandle> observer_;
};

void allocate_and_free(std::int64_t times) {
  for (std::int64_t count = 0; count < times; ++count) (void)at::empty({1000});
}

void add_small(std::int64_t times) {
  static const at::Tensor left = at::ones({8, 8});
  for (std::int64_t count = 0; count < times; ++count) (void)at::add(left, left);
}

void train_small(std::int64_t times) {
  static const at::Tensor input = at::ones({8, 8});
  static const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  for (std::int64_t count = 0; count < times; ++count) (weight * input).sum().backward();
}

/// The seconds of one run of `work` in each of the first `variants` variants, per round.
template <class Work>
std::vector<std::vector<double>> measure(std::size_t variants, int rounds, Work work) {
  std::vector<std::vector<double>> samples(variants);
  for (int round = -1; round < rounds; ++round) {  // the first round is a warm-up
    for (std::size_t turn = 0; turn < variants; ++turn) {
      const std::size_t index = (turn + static_cast<std::size_t>(round + 1)) % variants;
      const running held{static_cast<variant>(index)};
      const double begin = cpu_seconds();
      work();
      const double seconds = cpu_seconds() - begin;
      if (round >= 0) samples[index].push_back(seconds);
    }
  }
  return samples;
}

/// A line for each variant: the case, the variant, and the nanoseconds of one call in each round.
void print_samples(std::string_view what, const std::vector<std::vector<double>>& samples, std::int64_t times) {
  for (std::size_t index = 0; index < samples.size(); ++index) {
    std::cout << what << '\t' << variant_names[index] << '\t';
    for (const double seconds : samples[index]) std::cout << 1e9 * seconds / static_cast<double>(times) << ' ';
    std::cout << '\n';
  }
}

void measure_step(const torch_gpt::model_config& config, int rounds) {
  torch_gpt::decoder model{config};
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-4)};
  const at::Tensor tokens = at::randint(config.vocabulary, {1, config.seq_len}, at::kLong);
  const auto step = [&] {
    optimizer.zero_grad();
    model->forward(tokens, tokens).backward();
    optimizer.step();
  };
  step();  // creates the moments
  const auto samples = measure(variant_names.size(), rounds, step);
  print_samples("a training step of GPT-2, one sequence of 128 tokens", samples, 1);
}

}  // namespace

/// torch_bench ROUNDS [quick]: for the driver of `./dev bench`.
int main(int argument_count, char** arguments) {
  const int rounds = argument_count > 1 ? std::max(1, std::atoi(arguments[1])) : 7;
  const bool is_quick = argument_count > 2;
  at::set_num_threads(1);
  const std::int64_t times = is_quick ? 100 : 100'000;
  const std::int64_t backward_times = times / 10;
  print_samples("mul, sum and backward of 8 x 8 tensors",
                measure(variant_names.size(), rounds, [&] { train_small(backward_times); }), backward_times);
  {
    const torch::NoGradGuard plain_operators;
    print_samples("at::empty({1000}) and its end", measure(variant_names.size(), rounds, [&] { allocate_and_free(times); }),
                  times);
    print_samples("at::add of two 8 x 8 tensors", measure(variant_names.size(), rounds, [&] { add_small(times); }), times);
  }
  torch_gpt::model_config gpt2{torch_gpt::family::gpt, 12, 12, 768, 128, 50257};
  if (is_quick) gpt2 = {torch_gpt::family::gpt, 1, 2, 64, 16, 100};
  measure_step(gpt2, rounds);
  return 0;
}
