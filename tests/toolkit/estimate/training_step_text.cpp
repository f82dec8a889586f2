#include <memprof/toolkit/estimate/training_step_text.hpp>

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/fit_text.hpp>
#include <memprof/toolkit/estimate/forward_estimate.hpp>
#include <memprof/toolkit/estimate/training_step_json.hpp>
#include <memprof/trace/device_presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace memprof_tests::report_training_step_text {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using memprof::decoder_model;
using memprof::training_estimate;
using memprof::training_setup;

TEST_CASE("training step text: segments of one name are one phase, with the greatest peak and the last end") {
  memprof::space_profile space;
  const auto add = [&](const char* name, std::int64_t peak, std::int64_t end) {
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment = name;
    usage.segment_peak = peak;
    usage.cumulative_current = end;
  };
  add("FORWARD_PASS", 10, 8);
  add("BACKWARD_PASS", 2, 3);
  add("FORWARD_PASS", 9, 11);
  add("BACKWARD_PASS", 1, 3);
  add("END_TRACE", 0, 2);
  const std::vector<memprof::step_phase> phases = memprof::phases_of(space);
  CHECK(phases == std::vector<memprof::step_phase>{{"FORWARD_PASS", 2, 12, 11}, {"BACKWARD_PASS", 2, 12, 3}});
}

TEST_CASE("training step text: it says what was estimated, the phases, and what the peak is made of") {
  const decoder_model model{.layers = 2, .d_model = 1024, .heads = 16, .vocabulary = 32768};
  const training_setup setup{.batch_size = 4, .seq_len = 512};
  const training_estimate estimate = memprof::estimate_training_step(model, setup);
  const std::string text = memprof::to_text(estimate, model, setup);
  // Two blocks of 12 * 1024^2 + 13 * 1024, two matrices of 32768 * 1024, 512 positions, the last norm.
  CHECK_THAT(text, StartsWith("Training Step (estimated, nothing is run)\n"
                              "Model: gpt2, L=2, D=1024, H=16, KV=16, M=4096, V=32768, 92,827,648 parameters\n"
                              "Setup: B=4, T=512, dtype=fp32, optimizer=adamw, attention=plain, recompute=off\n"
                              "Peak: "));
  CHECK_THAT(text, ContainsSubstring("\n\nPhase              | Count | Peak GiB | End GiB\n"));
  // Twice the parameters: 742,621,184 bytes.
  CHECK_THAT(text, ContainsSubstring("\noptimizer_state      |   0.692 |"));
  CHECK_THAT(text, ContainsSubstring("Operation at the peak"));
  CHECK_THAT(text, ContainsSubstring("(" + memprof::detail::grouped(estimate.space().cumulative_peak) + " B) in "));
  CHECK_THAT(text, !ContainsSubstring("Device:"));
}

TEST_CASE("training step text: the peak comes before the tables, in grouped digits, and every row has a name") {
  const decoder_model model{.layers = 2, .d_model = 64, .heads = 4, .vocabulary = 100};
  const training_setup setup{.batch_size = 2, .seq_len = 16};
  training_estimate estimate = memprof::estimate_training_step(model, setup);
  memprof::space_profile& space = estimate.step.spaces.at(0);
  space.cumulative_peak = space.live_at_peak.bytes = 93'475'373'056;
  space.live_at_peak.by_operation = {{"backward", 93'475'373'056 - 30'000'000, 3}, {"", 20'000'000, 1}};
  space.peak_operation.clear();
  const std::string text = memprof::to_text(estimate, model, setup);
  // 93,475,373,056 / 2^30 = 87.0558...
  CHECK_THAT(text, ContainsSubstring("\nPeak: 87.056 GiB (93,475,373,056 B) in "));
  CHECK_THAT(text, ContainsSubstring(", outside every operation\n\nPhase "));
  CHECK(text.find("\nPeak: ") < text.find("\nPhase "));
  // 30 MB are 0.03 %, and 20 and 10 MB each less.
  CHECK_THAT(text, ContainsSubstring("\nbackward                  |  87.028 | 100.0 %\n"
                                     "(outside every operation) |   0.019 | < 0.1 %\n"
                                     "others                    |   0.009 | < 0.1 %\n"));
}

TEST_CASE("training step text: every part of a setup that is not the default is named") {
  const decoder_model model{.family = memprof::decoder_family::llama,
                            .layers = 4,
                            .d_model = 64,
                            .heads = 4,
                            .vocabulary = 32,
                            .experts = 4,
                            .experts_per_token = 2};
  training_setup setup{.batch_size = 1, .seq_len = 8, .micro_batches = 3, .type = memprof::dtype::bfloat16};
  setup.gradient_type = memprof::dtype::float32;
  setup.master_weights = true;
  setup.optimizer = memprof::optimizer_kind::adam;
  setup.attention = memprof::attention_kind::fused;
  setup.recompute = memprof::recomputation_kind::blocks;
  setup.parallel = {.tensor = 2, .pipeline = 2, .data = 3, .zero_stage = 1};
  setup.pipeline_stage = 1;
  setup.device = memprof::device_preset("gpu-24gb");
  const training_estimate estimate = memprof::estimate_training_step(model, setup);
  const std::string text = memprof::to_text(estimate, model, setup);
  CHECK_THAT(text, ContainsSubstring("experts=4, experts-per-token=2"));
  CHECK_THAT(text, ContainsSubstring("Setup: B=1, T=8, micro-batches=3, dtype=bf16, gradients=fp32, optimizer=adam, "
                                     "master-weights=fp32, attention=fused, recompute=blocks, tensor-parallel=2, "
                                     "pipeline-parallel=2, stage=1, data-parallel=3, zero=1\n"));
  CHECK_THAT(text, ContainsSubstring("Device: gpu-24gb, 23.640 GiB of cuda:0: fits, "));
}

TEST_CASE("training step text: a CUDA device is compared with the sum of all parts, which are shown") {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  training_setup setup{.seq_len = 8, .device = memprof::device_preset("gpu-24gb")};
  const decoder_model model{.layers = 1, .d_model = 8, .heads = 1, .vocabulary = 8};
  const training_estimate estimate = memprof::estimate_training_step(model, setup);
  memprof::predicted_fit room;
  room.prediction.parts = {{"CUDA context", gib / 2, gib / 4, gib / 2, false, "a source"},
                           {"activations", 20 * gib, 20 * gib, 20 * gib}};
  const auto text = [&] { return memprof::to_text(estimate, model, setup, &room); };
  CHECK_THAT(text(), ContainsSubstring("Device: gpu-24gb, 23.640 GiB of cuda:0: fits, 3.140 GiB to spare\n"
                                       "Parts: CUDA context 0.500, activations 20.0 GiB\n"
                                       "Besides: CUDA context 256 MiB to 512 MiB: a source\n\n"));
  room.prediction.parts[1].bytes = 24 * gib;
  room.fit.first_failure.emplace();
  room.is_certain = false;
  CHECK_THAT(text(), ContainsSubstring(": probably does not fit, 0.860 GiB too much\n"));
}

TEST_CASE("training step text: a device without room says how much is missing, and where it is full first") {
  const decoder_model& model = memprof::find_decoder("llama-7b").model;
  training_setup setup{.seq_len = 4096, .device = memprof::device_preset("gpu-24gb")};
  const training_estimate estimate = memprof::estimate_training_step(model, setup);
  // 6,738,415,616 parameters of 4 bytes alone are more.
  CHECK_THAT(memprof::to_text(estimate, model, setup), ContainsSubstring("of cuda:0: does not fit, "));
  CHECK_THAT(memprof::to_text(estimate, model, setup), ContainsSubstring(" too much; full first outside every operation\n"));
}

TEST_CASE("training step JSON: bytes are those of the profile") {
  const decoder_model model{.layers = 2, .d_model = 64, .heads = 4, .vocabulary = 100};
  const training_estimate estimate = memprof::estimate_training_step(model, {.batch_size = 2, .seq_len = 16});
  const nlohmann::ordered_json document = memprof::to_json(estimate);
  CHECK(document["parameters"] == memprof::parameter_count(model, 16));
  CHECK(document["peak_bytes"] == estimate.space().cumulative_peak);
  CHECK(document["phases"].size() == 5);
  std::int64_t sum = 0;
  for (const auto& row : document["categories_at_peak"]) sum += row["bytes"].get<std::int64_t>();
  CHECK(sum == estimate.space().cumulative_peak);
}

TEST_CASE("training step text: no line of it, of an estimate and of fit's table is wider than asked") {
  const decoder_model model{.layers = 12, .d_model = 768, .heads = 12, .vocabulary = 50257};
  const training_setup setup{.batch_size = 1, .seq_len = 1024};
  const training_estimate estimate = memprof::estimate_training_step(model, setup);
  const memprof::shape_estimate forward = memprof::estimate_forward(model, 1, 1024);
  const std::vector<memprof::fit_row> rows{{"all kept", {.size = 15, .need = {}, .one_more = {}}},
                                           {"blocks recomputed", {.size = 88, .need = {}, .one_more = {}}}};
  const auto texts = [&](std::size_t columns) {
    return std::vector<std::string>{memprof::to_text(estimate, model, setup, nullptr, columns),
                                    memprof::to_text(forward, 12, columns), memprof::to_text(rows, "Longest sequence", columns)};
  };
  for (const std::size_t columns : {60, 71, 72, 80, 89, 100, 113, 134}) {
    for (const std::string& text : texts(columns)) {
      std::istringstream lines{text};
      for (std::string line; std::getline(lines, line);) {
        INFO(columns << ": " << line);
        CHECK(memprof::detail::display_width(line) <= columns);
      }
    }
  }
  CHECK(texts(200) == texts(0));
}

TEST_CASE("training step text: a line is broken at spaces and indented, and tables are left") {
  CHECK(memprof::detail::folded("one two three\n\n  four five six\nfar | apart\n", 10) ==
        "one two\n  three\n\n  four\n    five\n    six\nfar | apart\n");
  CHECK(memprof::detail::folded("unbreakable word", 5) == "unbreakable\n  word");
  CHECK(memprof::detail::folded("one two three", 0) == "one two three");
}

}  // namespace memprof_tests::report_training_step_text
