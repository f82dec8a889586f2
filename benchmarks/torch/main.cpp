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
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
constexpr std::array<std::string_view, 6> variant_names{"off",
                                                        "an observer that does nothing",
                                                        "installed, idle",
                                                        "counting (torch_allocations)",
                                                        "operations (torch_backend)",
                                                        "with track_pytorch_ops"};

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

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Prints a table and returns what the variant with operations adds to one call, in nanoseconds.
double print_each(const char* what, const std::vector<std::vector<double>>& samples, std::int64_t times) {
  std::printf("\n%s\n%-32s %10s %12s %24s\n", what, "", "ns each", "added", "least to greatest");
  double added_by_operations = 0;
  for (std::size_t index = 0; index < samples.size(); ++index) {
    std::vector<double> added;
    std::vector<double> each;
    for (std::size_t round = 0; round < samples[index].size(); ++round) {
      each.push_back(1e9 * samples[index][round] / static_cast<double>(times));
      added.push_back(1e9 * (samples[index][round] - samples[0][round]) / static_cast<double>(times));
    }
    std::printf("%-32s %10.0f %+12.0f %+12.0f to %+8.0f\n", variant_names[index].data(), median(each), median(added),
                *std::ranges::min_element(added), *std::ranges::max_element(added));
    if (static_cast<variant>(index) == variant::operations) added_by_operations = median(added);
  }
  return added_by_operations;
}

/// Medians within rounds, and the fastest step of each variant, which noise affects least.
void print_ratios(const char* what, const std::vector<std::vector<double>>& samples) {
  const double fastest_off = std::ranges::min(samples[0]);
  std::printf("\n%s\n%-32s %10s %12s %24s %14s\n", what, "", "s a step", "slower by", "least to greatest", "fastest steps");
  for (std::size_t index = 0; index < samples.size(); ++index) {
    std::vector<double> slower;
    for (std::size_t round = 0; round < samples[index].size(); ++round) {
      slower.push_back(100 * (samples[index][round] / samples[0][round] - 1));
    }
    std::printf("%-32s %10.3f %+10.2f %% %+10.2f %% to %+6.2f %% %+12.2f %%\n", variant_names[index].data(),
                median(samples[index]), median(slower), std::ranges::min(slower), std::ranges::max(slower),
                100 * (std::ranges::min(samples[index]) / fastest_off - 1));
  }
}

void measure_step(const torch_gpt::model_config& config, int rounds, double ns_per_operator) {
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
  print_ratios("a training step of GPT-2's dimensions, one sequence of 128 tokens", samples);

  auto capture = memprof::begin_capture<memprof::torch_backend>();
  step();
  capture.end();
  std::int64_t operators = 0;
  for (const memprof::operation_profile& operation : capture.profile().operations) operators += operation.invocations;
  std::printf("one step has %lld operators; at %.0f ns each, as measured above, that is %.2f %% of it\n",
              static_cast<long long>(operators), ns_per_operator,
              100e-9 * static_cast<double>(operators) * ns_per_operator / median(samples[0]));
}

}  // namespace

/// torch_bench [ROUNDS [LAYERS]]
int main(int argument_count, char** arguments) {
  const int rounds = argument_count > 1 ? std::max(1, std::atoi(arguments[1])) : 7;
  at::set_num_threads(1);
  constexpr std::int64_t times = 100'000;
  constexpr std::int64_t backward_times = 10'000;
  print_each("mul, sum and backward of 8 x 8 tensors", measure(variant_names.size(), rounds, [] { train_small(backward_times); }),
             backward_times);
  const torch::NoGradGuard plain_operators;
  print_each("at::empty({1000}) and its end", measure(variant_names.size(), rounds, [] { allocate_and_free(times); }), times);
  const double ns_per_operator =
      print_each("at::add of two 8 x 8 tensors", measure(variant_names.size(), rounds, [] { add_small(times); }), times);
  const torch::AutoGradMode training{true};
  torch_gpt::model_config gpt2{torch_gpt::family::gpt, 12, 12, 768, 128, 50257};
  if (argument_count > 2) gpt2.layers = std::max(1, std::atoi(arguments[2]));
  measure_step(gpt2, rounds, ns_per_operator);
  return 0;
}
