#include "captures.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch/rules/onednn_lstm.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>
#include <tuple>
#include <vector>

namespace memprof_tests::torch_no_dispatch_lstm {

// Layers that oneDNN computes whole. ctest runs the float32 case once more for each set of the processor's instructions that
// oneDNN can be limited to.

namespace {

using memprof::detail::onednn_lstm;

/// Sizes around everything that the formula rounds or branches at, and 40 more by chance.
std::vector<onednn_lstm> layers(std::int64_t number_bytes) {
  std::vector<onednn_lstm> all;
  for (const auto& [steps, batch, features, hidden] :
       std::vector<std::tuple<int, int, int, int>>{{10, 4, 16, 32},
                                                   {1, 1, 1, 1},
                                                   {5, 2, 1, 8},
                                                   {5, 2, 8, 1},
                                                   {5, 2, 1, 5},
                                                   {7, 3, 20, 36},
                                                   {7, 3, 64, 64},  // 4 * 64 is a multiple of 256
                                                   {2, 130, 256, 64},
                                                   {3, 127, 40, 60},
                                                   {3, 128, 40, 60},
                                                   {3, 5, 513, 64},
                                                   {1, 1, 300, 64},
                                                   {35, 16, 128, 256}}) {
    all.push_back({steps, batch, features, hidden, number_bytes});
  }
  std::mt19937 random{1};
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::int64_t>(1 + random() % most); };
  for (int count = 0; count < 40; ++count) all.push_back({up_to(20), up_to(150), up_to(300), up_to(200), number_bytes});
  return all;
}

/// Forward, and if gradients are recorded backward, by the operators themselves. The bytes that are kept in between.
std::int64_t run_layer(const onednn_lstm& layer, torch::ScalarType dtype) {
  const auto ones = [&](std::vector<std::int64_t> sizes) { return torch::ones(sizes, dtype); };
  const auto input = ones({layer.steps, layer.batch, layer.features});
  const auto of_input = ones({layer.gates(), layer.features});
  const auto of_state = ones({layer.gates(), layer.hidden});
  const auto bias = ones({layer.gates()});
  const auto hidden = ones({layer.batch, layer.hidden});
  const auto cell = ones({layer.batch, layer.hidden});
  constexpr std::int64_t lstm = 2;  // oneDNN's kind of cell
  const auto [output, last_hidden, last_cell, workspace] = at::mkldnn_rnn_layer(
      input, of_input, of_state, bias, bias, hidden, cell, false, {}, lstm, layer.hidden, 1, true, false, false, true);
  CHECK(workspace.defined() == torch::GradMode::is_enabled());
  if (!workspace.defined()) return 0;
  const auto gradients = at::mkldnn_rnn_layer_backward(input, of_input, of_state, bias, bias, hidden, cell, output, last_hidden,
                                                       last_cell, output, last_hidden, last_cell, false, lstm, layer.hidden, 1,
                                                       true, true, false, {}, false, workspace);
  CHECK(std::get<1>(gradients).sizes() == of_input.sizes());
  CHECK(std::get<2>(gradients).sizes() == of_state.sizes());
  return static_cast<std::int64_t>(workspace.nbytes());
}

struct both_runs {
  recorded::changes real;
  recorded::changes simulated;
  memprof::vector<memprof::approximated_operation> approximations;
};

template <class Run>
both_runs run_both(Run run) {
  both_runs result;
  auto& allocations = recorded::cpu_allocations::instance();
  run();  // oneDNN keeps some memory of its first call
  allocations.start();
  run();
  result.real = recorded::without_scalars(allocations.stop());
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  run();
  result.simulated = recorded::without_scalars(events.so_far());
  result.approximations = estimates_of(capture.profile());
  return result;
}

}  // namespace

TEST_CASE("torch no_dispatch: the workspace of oneDNN's LSTM is what its source adds up to") {
  // 10 steps of 4 sequences: gates 40 * 128, outputs 40 * 32, and five times 88 rows of states, of 4 bytes, in pages of 4096.
  CHECK(memprof::detail::onednn_workspace_bytes({10, 4, 16, 32, 4}) == (5 + 2 + 5 * 3) * 4096);
  // 64 hidden numbers make 256 gates, which are padded to 272: 21 * 272 * 4 = 22848 bytes.
  CHECK(memprof::detail::onednn_workspace_bytes({7, 3, 64, 64, 4}) == (6 + 2 + 5 * 3) * 4096);
}

TEST_CASE("torch no_dispatch: oneDNN's LSTM in float32 allocates and frees as the real one, event by event") {
  for (const onednn_lstm& layer : layers(4)) {
    INFO(layer.steps << " steps, batch " << layer.batch << ", " << layer.features << " features, " << layer.hidden << " hidden");
    const both_runs runs = run_both([&] { run_layer(layer, torch::kFloat); });
    CHECK(runs.approximations.empty() == memprof::detail::has_known_onednn());
    if (memprof::detail::has_known_onednn()) CHECK(runs.simulated == runs.real);
  }
}

TEST_CASE("torch no_dispatch: a module of LSTMs trains with the bytes of the real one, whatever its options") {
  for (const bool has_bias : {true, false}) {
    for (const bool is_bidirectional : {false, true}) {
      for (const bool is_batch_first : {false, true}) {
        for (const int layer_count : {1, 3}) {
          INFO(has_bias << is_bidirectional << is_batch_first << layer_count);
          const auto options = torch::nn::LSTMOptions(24, 40)
                                   .num_layers(layer_count)
                                   .bias(has_bias)
                                   .bidirectional(is_bidirectional)
                                   .batch_first(is_batch_first)
                                   .dropout(layer_count == 1 ? 0.0 : 0.1);
          const both_runs runs = run_both([&] {
            torch::nn::LSTM module(options);
            const auto [output, state] = module->forward(torch::ones({6, 5, 24}));
            (output.sum() + std::get<1>(state).sum()).backward();
          });
          CHECK(runs.approximations.empty() == memprof::detail::has_known_onednn());
          if (!memprof::detail::has_known_onednn()) continue;
          CHECK(recorded::totals_of(runs.simulated) == recorded::totals_of(runs.real));
        }
      }
    }
  }
}

TEST_CASE("torch no_dispatch: the workspace of oneDNN's LSTM in bfloat16 is the real one, and so is all else that it allocates") {
  if (!memprof::detail::has_known_onednn()) SKIP("the formulas are those of oneDNN 3.12");
  for (const onednn_lstm& layer : layers(2)) {
    INFO(layer.steps << " steps, batch " << layer.batch << ", " << layer.features << " features, " << layer.hidden << " hidden");
    std::vector<std::int64_t> workspaces;
    both_runs runs;
    try {
      runs = run_both([&] { workspaces.push_back(run_layer(layer, torch::kBFloat16)); });
    } catch (const std::exception&) {
      SKIP("oneDNN computes no LSTM in bfloat16 on this processor");
    }
    const std::int64_t expected = memprof::detail::onednn_workspace_bytes(layer);
    CHECK(workspaces == std::vector<std::int64_t>(3, expected));  // twice for real, and once simulated
    CHECK(runs.approximations.empty());
    CHECK(runs.simulated == runs.real);
  }
}

TEST_CASE("torch no_dispatch: of recurrent layers libtorch gives oneDNN the LSTM alone") {
  const auto is_given = [](auto module) {
    auto capture = begin_torch();
    (void)module->forward(torch::ones({6, 5, 24}));
    capture.end();
    const auto& operations = capture.profile().operations;
    return std::any_of(operations.begin(), operations.end(),
                       [](const auto& one) { return one.name == "aten::mkldnn_rnn_layer"; });
  };
  CHECK(is_given(torch::nn::LSTM(24, 40)));
  CHECK_FALSE(is_given(torch::nn::GRU(24, 40)));
  CHECK_FALSE(is_given(torch::nn::RNN(24, 40)));
}

TEST_CASE("torch no_dispatch: without gradients oneDNN's LSTM leaves no workspace, and allocates as the real one") {
  const torch::NoGradGuard no_gradients;
  for (const onednn_lstm& layer : layers(4)) {
    INFO(layer.steps << " steps, batch " << layer.batch << ", " << layer.features << " features, " << layer.hidden << " hidden");
    const both_runs runs = run_both([&] { run_layer(layer, torch::kFloat); });
    CHECK(runs.approximations.empty());
    CHECK(runs.simulated == runs.real);
  }
}

}  // namespace memprof_tests::torch_no_dispatch_lstm
