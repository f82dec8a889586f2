#include "captures.hpp"
#include "models.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace memprof_tests::torch_no_dispatch_size {

namespace {

/// Physical memory of this process, in bytes.
std::int64_t resident_bytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

struct measurement {
  memprof::profile profile;
  std::int64_t parameters = 0;
  std::int64_t grown_bytes = 0;  ///< of physical memory
  double seconds = 0;
};

template <class Model>
measurement measure(const models::options& chosen, const models::training& run) {
  measurement result;
  const std::int64_t before = resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  auto capture = begin_no_dispatch({.device = {run.device.is_cuda() ? "cuda" : "cpu"}});
  Model model(chosen);
  for (const auto& parameter : model->parameters()) result.parameters += parameter.numel();
  models::train(model, chosen, run, [](const char* phase) { memprof::snapshot(phase); });
  result.grown_bytes = resident_bytes() - before;
  capture.end();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.profile = capture.profile();
  return result;
}

void print(const char* name, const measurement& measured, const char* space) {
  std::printf("%s: peak %.3f MB, %.3f s, %.1f MB of physical memory more\n", name,
              static_cast<double>(measured.profile.space(space).cumulative_peak) / 1e6, measured.seconds,
              static_cast<double>(measured.grown_bytes) / 1e6);
}

constexpr std::int64_t greatest_growth = 64'000'000;

}  // namespace

TEST_CASE("torch no_dispatch: a step of GPT-2 124M needs no memory") {
  const models::options chosen{.layers = 12, .width = 768, .heads = 12, .vocabulary = 50257, .context = 1024, .batch = 4};
  const auto measured = measure<models::gpt>(chosen, {.steps = 1});
  print("GPT-2 124M, float32, batch 4, one step", measured, "cpu");
  // Untied: the published 124,439,808 and the head's 50257 x 768.
  CHECK(measured.parameters == 124'439'808 + 50257 * 768);
  // Parameters, gradients and both moments of AdamW live when the step ends.
  const auto& segments = measured.profile.space("cpu").segments;
  const std::int64_t mask = chosen.context * chosen.context;
  CHECK(segments[segments.size() - 2].cumulative_current == 4 * 4 * measured.parameters + mask);
  CHECK(measured.grown_bytes < greatest_growth);
}

TEST_CASE("torch no_dispatch: TinyLlama 1.1B in bfloat16 with batch 64 needs no memory") {
  const models::options chosen{.layers = 22,
                               .width = 2048,
                               .heads = 32,
                               .key_heads = 4,
                               .vocabulary = 32000,
                               .context = 1024,
                               .batch = 64,
                               .hidden = 5632};
  const auto measured = measure<models::llama>(chosen, {.steps = 1, .device = torch::kCUDA, .dtype = torch::kBFloat16});
  print("TinyLlama 1.1B, bfloat16, batch 64, one step", measured, "cuda:0");
  CHECK(measured.parameters == 1'100'048'384);  // as published
  // The scores of every layer's attention in bfloat16, before and after the softmax, are only a part of the peak.
  const std::int64_t scores = chosen.batch * chosen.heads * chosen.context * chosen.context * 2;
  CHECK(measured.profile.space("cuda:0").cumulative_peak > 2 * chosen.layers * scores);
  CHECK(measured.grown_bytes < greatest_growth);
}

}  // namespace memprof_tests::torch_no_dispatch_size
