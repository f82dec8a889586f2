#include "captures.hpp"
#include "models.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::torch_no_dispatch_models {

namespace {

enum class architecture { gpt, llama };

struct configuration {
  const char* text;
  architecture built;
  models::options chosen;
  models::training run;
  int threads = 1;
  bool has_fixed_order = true;  ///< false: threads of a kernel allocate side by side
};

/// What a training allocated and freed, and how far it was at the end of each phase.
struct recording {
  struct mark {
    std::string phase;
    std::size_t changes;
  };

  recorded::changes all;
  std::vector<mark> marks;
};

template <class After>
void train(const configuration& wanted, After after) {
  if (wanted.built == architecture::gpt) return models::train(models::gpt(wanted.chosen), wanted.chosen, wanted.run, after);
  models::train(models::llama(wanted.chosen), wanted.chosen, wanted.run, after);
}

recording record_real(const configuration& wanted) {
  auto& allocations = recorded::cpu_allocations::instance();
  recording result;
  allocations.start();
  train(wanted, [&](const char* phase) { result.marks.push_back({phase, allocations.so_far().size()}); });
  result.all = allocations.stop();
  return result;
}

struct simulation {
  recording events;
  memprof::profile profile;
};

simulation simulate(const configuration& wanted) {
  simulation result;
  auto capture = begin_no_dispatch({.device = {"cpu"}});
  recorded::capture_events events{"cpu"};
  train(wanted, [&](const char* phase) {
    result.events.marks.push_back({phase, events.so_far().size()});
    memprof::snapshot(phase);
  });
  result.events.all = events.so_far();
  capture.end();
  result.profile = capture.profile();
  return result;
}

/// The changes of the training itself, in order, and those of the destruction of model and optimizer, sorted: the optimizer keeps
/// its state by address, so that its end has no order of its own.
std::pair<recorded::changes, recorded::changes> split(const recording& from) {
  const auto end = from.all.begin() + static_cast<std::ptrdiff_t>(from.marks.back().changes);
  recorded::changes destruction = recorded::without_scalars({end, from.all.end()});
  std::sort(destruction.begin(), destruction.end());
  return {recorded::without_scalars({from.all.begin(), end}), std::move(destruction)};
}

/// The greatest rise above the start of each phase.
std::vector<std::int64_t> phase_peaks(const recording& from) {
  std::vector<std::int64_t> peaks;
  std::size_t index = 0;
  for (const auto& mark : from.marks) {
    std::int64_t live = 0;
    std::int64_t peak = 0;
    for (; index < mark.changes; ++index) {
      live += from.all[index];
      peak = std::max(peak, live);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::vector<configuration> configurations() {
  using models::optimizer_kind;
  const auto gpt = architecture::gpt;
  const auto llama = architecture::llama;
  const models::options grouped{.key_heads = 2, .hidden = 168};
  return {
      {"GPT", gpt, {}, {}},
      {"GPT, larger", gpt, {.layers = 3, .width = 96, .heads = 6, .vocabulary = 1000, .context = 48, .batch = 3}, {}},
      {"GPT, tied head", gpt, {.tied_head = true}, {}},
      {"GPT, dropout", gpt, {.dropout = 0.1}, {}},
      {"GPT, fused attention", gpt, {.fused_attention = true}, {}},
      {"GPT, fused attention of long rows", gpt, {.context = 200, .fused_attention = true}, {}},
      {"GPT, fused attention with dropout", gpt, {.fused_attention = true, .dropout = 0.1}, {}},
      {"GPT, SGD, clipped", gpt, {}, {.optimizer = optimizer_kind::sgd, .clips_gradients = true}},
      {"GPT, Adam, clipped", gpt, {}, {.optimizer = optimizer_kind::adam, .clips_gradients = true}},
      {"GPT, accumulated gradients", gpt, {}, {.micro_batches = 3}},
      {"GPT, two threads", gpt, {}, {.clips_gradients = true}, 2},
      {"GPT, two threads, fused attention", gpt, {.fused_attention = true}, {}, 2, false},
      {"Llama", llama, {.hidden = 168}, {}},
      {"Llama, grouped queries", llama, grouped, {}},
      {"Llama, tied head, SGD", llama, {.hidden = 168, .tied_head = true}, {.optimizer = optimizer_kind::sgd}},
      {"Llama, grouped queries, fused attention", llama, {.key_heads = 2, .hidden = 168, .fused_attention = true}, {}},
      {"Llama, dropout, clipped", llama, {.hidden = 168, .dropout = 0.1}, {.clips_gradients = true}},
      {"Llama, accumulated gradients, Adam", llama, grouped, {.micro_batches = 2, .optimizer = optimizer_kind::adam}},
      {"Llama, two threads", llama, grouped, {}, 2},
  };
}

}  // namespace

TEST_CASE("torch no_dispatch: a language model's training allocates and frees as the real one, event by event") {
  const configuration wanted = GENERATE(from_range(configurations()));
  INFO(wanted.text);
  at::set_num_threads(wanted.threads);
  const recording real = record_real(wanted);
  const simulation simulated = simulate(wanted);
  at::set_num_threads(1);

  auto [real_training, real_end] = split(real);
  auto [simulated_training, simulated_end] = split(simulated.events);
  if (!wanted.has_fixed_order) {
    std::sort(real_training.begin(), real_training.end());
    std::sort(simulated_training.begin(), simulated_training.end());
  }
  CHECK(real_training.size() > 500);
  CHECK(real_training.size() == simulated_training.size());
  const auto first =
      std::mismatch(real_training.begin(), real_training.end(), simulated_training.begin(), simulated_training.end());
  CHECK(first.first - real_training.begin() == std::ssize(real_training));
  CHECK(real_end == simulated_end);

  const auto& segments = simulated.profile.space("cpu").segments;
  const auto real_peaks = phase_peaks(real);
  REQUIRE(segments.size() == real_peaks.size() + 1);
  for (std::size_t index = 0; index < real_peaks.size(); ++index) {
    INFO(segments[index].segment);
    CHECK(segments[index].segment == real.marks[index].phase);
    // Some few scalars of 4 or 8 bytes exist in only one of the two.
    CHECK(std::abs(segments[index].segment_peak - real_peaks[index]) <= 8 * recorded::scalar_bytes);
  }
  CHECK(estimates_of(simulated.profile).empty());
  CHECK(simulated.profile.mode == memprof::run_mode::no_dispatch);
}

TEST_CASE("torch no_dispatch: a thread of the program trains without data as well") {
  const configuration wanted{"GPT", architecture::gpt, {}, {}};
  const auto expected = simulate(wanted);
  simulation simulated;
  {
    auto capture = begin_no_dispatch();
    std::thread{[&] {
      (void)torch::zeros({1});  // the first operation of a thread finds out that it is simulated
      train(wanted, [&](const char*) {});
    }}.join();
    capture.end();
    simulated.profile = capture.profile();
  }
  const auto& cpu = simulated.profile.space("cpu");
  CHECK(cpu.cumulative_peak - expected.profile.space("cpu").cumulative_peak <= recorded::scalar_bytes);
  CHECK(cpu.cumulative_current == 0);
}

TEST_CASE("torch no_dispatch: threads train side by side, each with all of its own allocations") {
  const configuration wanted{"GPT", architecture::gpt, {}, {}};
  const auto one = simulate(wanted);
  constexpr int threads = 4;
  auto capture = begin_no_dispatch();
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&] {
      (void)torch::zeros({1});
      train(wanted, [](const char*) {});
    });
  }
  for (std::thread& thread : running) thread.join();
  capture.end();
  const auto& cpu = capture.profile().space("cpu");
  const auto& expected = one.profile.space("cpu");
  const std::int64_t scalars = threads * static_cast<std::int64_t>(sizeof(float));
  CHECK(cpu.allocations == threads * expected.allocations + scalars);
  CHECK(cpu.allocation_count == threads * (expected.allocation_count + 1));
  CHECK(cpu.deallocations == cpu.allocations);
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
}

TEST_CASE("torch no_dispatch: measures GPT-2 124M for real and simulated", "[.report]") {
  const models::options gpt2{.layers = 12, .width = 768, .heads = 12, .vocabulary = 50257, .context = 256, .batch = 2};
  const configuration wanted{"GPT-2 124M", architecture::gpt, gpt2, {.steps = 2}};
  const auto seconds_of = [](auto run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  recording real;
  simulation simulated;
  const double simulated_seconds = seconds_of([&] { simulated = simulate(wanted); });
  const double real_seconds = seconds_of([&] { real = record_real(wanted); });
  const auto real_peak = recorded::totals_of(real.all).peak;
  const auto simulated_peak = recorded::totals_of(simulated.events.all).peak;
  std::printf("GPT-2 124M, batch 2 x 256, 2 steps: %.2f s and %.3f MB for real, %.3f s and %.3f MB simulated\n", real_seconds,
              static_cast<double>(real_peak) / 1e6, simulated_seconds, static_cast<double>(simulated_peak) / 1e6);
  CHECK(split(real) == split(simulated.events));
}

}  // namespace memprof_tests::torch_no_dispatch_models
