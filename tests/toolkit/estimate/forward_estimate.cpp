#include <memprof/toolkit/estimate/estimate_json.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/forward_estimate.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memprof_tests::analysis_estimate_forward_estimate {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::decoder_model;
using memprof::estimate_forward;
using memprof::estimated_operation;
using memprof::shape_estimate;

namespace {

const estimated_operation& find(const shape_estimate& estimate, std::string_view name) {
  const auto found = std::find_if(estimate.operations.begin(), estimate.operations.end(),
                                  [&](const estimated_operation& operation) { return operation.name == name; });
  REQUIRE(found != estimate.operations.end());
  return *found;
}

/// What the forward pass of a step leaves live, by the estimate that replays every allocation.
std::int64_t kept_by_step(const decoder_model& model, memprof::dtype type) {
  const memprof::training_setup setup{.batch_size = 3, .seq_len = 16, .type = type};
  const memprof::training_estimate estimate = memprof::estimate_training_step(model, setup);
  const memprof::space_profile& space = estimate.space();
  const auto forward = std::find_if(space.segments.begin(), space.segments.end(),
                                    [](const memprof::segment_usage& usage) { return usage.segment == "FORWARD_PASS"; });
  REQUIRE(forward != space.segments.end());
  return forward->segment_change;
}

/// Small decoders of every family, with grouped heads, tied output and experts.
const std::array<decoder_model, 5> decoders{{
    {.layers = 2, .d_model = 32, .heads = 4, .vocabulary = 97},
    {.layers = 3, .d_model = 32, .heads = 4, .mlp_width = 80, .vocabulary = 97, .positions = 64, .tied_output = true},
    {.family = memprof::decoder_family::llama, .layers = 2, .d_model = 32, .heads = 4, .mlp_width = 88, .vocabulary = 97},
    {.family = memprof::decoder_family::llama, .layers = 2, .d_model = 32, .heads = 4, .kv_heads = 2, .vocabulary = 97},
    {.family = memprof::decoder_family::llama,
     .layers = 2,
     .d_model = 32,
     .heads = 4,
     .kv_heads = 2,
     .mlp_width = 48,
     .vocabulary = 97,
     .experts = 5,
     .experts_per_token = 2},
}};

}  // namespace

TEST_CASE("forward estimate: it is what the forward pass of a step leaves, in both precisions") {
  for (const decoder_model& model : decoders) {
    const shape_estimate estimate = estimate_forward(model, 3, 16);
    CAPTURE(estimate.architecture);
    std::int64_t fp32 = 0, bf16 = 0;
    for (const memprof::estimated_bytes& bucket : estimate.buckets) {
      fp32 += bucket.fp32_bytes;
      bf16 += bucket.bf16_bytes;
    }
    CHECK(fp32 == kept_by_step(model, memprof::dtype::float32));
    CHECK(bf16 == kept_by_step(model, memprof::dtype::bfloat16));
  }
}

TEST_CASE("forward estimate: its parameters are the decoder's") {
  for (const decoder_model& model : decoders) {
    std::int64_t sum = 0;
    for (const memprof::estimated_bytes& bucket : estimate_forward(model, 3, 16).buckets) sum += bucket.parameters;
    CHECK(sum == memprof::parameter_count(model, 16));
  }
  std::int64_t sum = 0;
  for (const memprof::estimated_bytes& bucket : estimate_forward(memprof::find_decoder("llama-7b").model, 1, 8).buckets)
    sum += bucket.parameters;
  CHECK(sum == 6'738'415'616);  // as published
}

TEST_CASE("forward estimate: Llama has its own layers and widths") {
  const shape_estimate estimate = estimate_forward(memprof::find_decoder("llama-7b").model, 1, 4096);
  CHECK(find(estimate, "blocks.*.mlp.expand").shape == std::vector<std::int64_t>{1, 4096, 2 * 11008});
  CHECK(find(estimate, "blocks.*.mlp.swiglu").shape == std::vector<std::int64_t>{1, 4096, 11008});
  CHECK(find(estimate, "blocks.*.mlp.expand").total.parameters == 32LL * 4096 * 22016);  // no biases
  const std::string text = to_text(estimate);
  CHECK(text.find("Config: B=1, T=4096, D=4096, H=32, L=32, V=32000\nModel: llama, KV=32, M=11008\n\n") != std::string::npos);
  CHECK(text.find("16384") == std::string::npos);
  CHECK(to_json(estimate)["config"]["architecture"] == "llama, KV=32, M=11008");
}

TEST_CASE("forward estimate: sizes that no decoder has are refused") {
  const decoder_model model;
  CHECK_THROWS_MATCHES(estimate_forward(model, 0, 16), memprof::error, MessageMatches(ContainsSubstring("batch_size is 0")));
  CHECK_THROWS_MATCHES(estimate_forward(model, 1, INT64_MAX), memprof::error, MessageMatches(ContainsSubstring("63 bits")));
}

}  // namespace memprof_tests::analysis_estimate_forward_estimate
