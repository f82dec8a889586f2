#include <memprof/toolkit/analysis/waterfall.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/trace/device_presets.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_waterfall {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::category;
using memprof::compared_run;
using memprof::make_waterfall;
using memprof::place_of;

namespace {

using path = std::vector<std::string>;

compared_run column(std::string title, std::vector<memprof::held_bytes> held, bool has_categories = true) {
  compared_run result;
  result.title = std::move(title);
  result.has_categories = has_categories;
  result.held = std::move(held);
  for (const memprof::held_bytes& each : result.held) result.bytes += each.bytes;
  return result;
}

/// Everything that must hold of any waterfall: rows sum to parts, parts to peaks, and changes to the changes of the peaks.
void check_sums(const memprof::waterfall& of) {
  for (std::size_t index = 0; index < of.columns.size(); ++index) {
    std::int64_t whole = 0;
    std::int64_t changes = 0;
    for (const memprof::waterfall_part& part : of.parts) {
      CHECK_FALSE(part.name.empty());
      std::int64_t rows = 0;
      for (const memprof::waterfall_row& row : part.rows) {
        CHECK_FALSE(row.operation.empty());
        CHECK((row.paths.at(index) != 0 || row.bytes.at(index) == 0));
        rows += row.bytes.at(index);
        if (index > 0) changes += memprof::change_at(row.bytes, index);
      }
      CHECK(part.bytes.at(index) == rows);
      whole += rows;
    }
    CHECK(whole == of.columns[index].bytes);
    if (index > 0) CHECK(changes == of.columns[index].bytes - of.columns[index - 1].bytes);
  }
}

/// The estimate of a step, the step without dispatch, and the real one.
memprof::waterfall of_step(const memprof::decoder_model& model, const memprof::training_setup& setup) {
  memprof::trace events;
  const memprof::training_estimate estimate = estimate_training_step(model, setup, nullptr, &events);
  std::vector<compared_run> columns;
  columns.push_back(compared_run_of("estimate", estimate.step, estimate.space(), stack_table_of(events, true)));
  nano_gpt::options options = nano_gpt::options_for(model, setup);
  for (const memprof::run_mode mode : {memprof::run_mode::no_dispatch, memprof::run_mode::normal}) {
    options.mode = mode;
    memprof::trace recorded;
    const nano_gpt::measured_step step = nano_gpt::measure_one_step(options, 1e-3, &recorded);
    columns.push_back(
        compared_run_of("run", step.profile, step.profile.space(options.memory_space()), stack_table_of(recorded, true)));
  }
  return make_waterfall(std::move(columns));
}

}  // namespace

TEST_CASE("waterfall: estimate, run without dispatch and real run of the plain trainer are equal, operation by operation") {
  const memprof::decoder_model gpt2{.layers = 2, .d_model = 24, .heads = 4, .vocabulary = 50};
  const memprof::decoder_model llama{.family = memprof::decoder_family::llama,
                                     .layers = 2,
                                     .d_model = 32,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .mlp_width = 40,
                                     .vocabulary = 50};
  for (const memprof::decoder_model& model : {gpt2, llama}) {
    for (const auto recompute : {memprof::recomputation_kind::off, memprof::recomputation_kind::blocks}) {
      const memprof::waterfall found = of_step(model, {.batch_size = 2, .seq_len = 9, .recompute = recompute});
      check_sums(found);
      REQUIRE(found.columns.size() == 3);
      CHECK(found.columns[0].bytes > 0);
      CHECK(found.columns[0].mode == memprof::run_mode::no_dispatch);
      CHECK(found.columns[2].mode == memprof::run_mode::normal);
      for (const memprof::waterfall_part& part : found.parts) {
        INFO(part.name);
        for (const memprof::waterfall_row& row : part.rows) {
          INFO(row.operation);
          CHECK_FALSE(memprof::differ(row.bytes));
          CHECK(row.blocks[0] == row.blocks[2]);
          CHECK(row.paths[0] == row.paths[2]);
        }
      }
    }
  }
}

TEST_CASE("waterfall: what an estimate left out is a change of the part that has it") {
  const memprof::decoder_model model{.layers = 2, .d_model = 24, .heads = 4, .vocabulary = 50};
  const memprof::training_setup setup{.batch_size = 2, .seq_len = 9};
  const auto of_setup = [&](const memprof::training_setup& with) {
    memprof::trace events;
    const memprof::training_estimate estimate = estimate_training_step(model, with, nullptr, &events);
    return compared_run_of("estimate", estimate.step, estimate.space(), stack_table_of(events, true));
  };
  memprof::training_setup without_state = setup;
  without_state.optimizer = memprof::optimizer_kind::sgd;
  const memprof::waterfall found = make_waterfall({of_setup(without_state), of_setup(setup)});
  check_sums(found);
  REQUIRE_FALSE(found.parts.empty());
  CHECK(found.parts[0].name == "optimizer state");
  CHECK(memprof::change_at(found.parts[0].bytes, 1) == 2 * 4 * parameter_count(model, 9));
  CHECK(found.parts[0].rows.at(0).paths == std::vector<std::int64_t>{0, 1});
  for (std::size_t index = 1; index < found.parts.size(); ++index) CHECK_FALSE(memprof::differ(found.parts[index].bytes));
}

TEST_CASE("waterfall: an estimate's trace gives its profile") {
  const memprof::decoder_model model{.layers = 2, .d_model = 24, .heads = 4, .vocabulary = 50};
  for (const memprof::device_description& device : {memprof::device_description{}, memprof::device_preset("gpu-24gb")}) {
    memprof::trace events;
    const memprof::training_estimate estimate =
        estimate_training_step(model, {.batch_size = 2, .seq_len = 9, .device = device}, nullptr, &events);
    memprof::profile expected = estimate.step;
    memprof::profile found = profile_of(events);
    expected.cost = found.cost = {};
    CHECK(found == expected);
    CHECK(found.mode == memprof::run_mode::no_dispatch);
  }
  memprof::trace events;
  const memprof::training_setup pipeline{.batch_size = 2, .seq_len = 9, .parallel = {.pipeline = 2}};
  CHECK_THROWS_MATCHES(estimate_training_step(model, pipeline, nullptr, &events), memprof::error,
                       MessageMatches(ContainsSubstring("requires pipeline_stage")));
}

TEST_CASE("waterfall: operations of both examples are in the same parts") {
  const auto part = [](const path& names, category kind = category::activation) { return place_of(names, kind).part; };
  CHECK(part({"forward", "block", "attention", "scores"}) == "attention");
  CHECK(part({"forward", "block", "attention", "aten::matmul", "aten::mm"}) == "attention");
  CHECK(part({"forward", "block", "mlp", "gelu"}) == "mlp");
  CHECK(part({"forward", "block", "mlp", "aten::gelu"}) == "mlp");
  CHECK(part({"forward", "block", "layer_norm"}) == "norms and residuals");
  CHECK(part({"forward", "block", "aten::layer_norm", "aten::native_layer_norm"}) == "norms and residuals");
  CHECK(part({"forward", "lm_head"}) == "head and loss");
  CHECK(part({"forward", "layer_norm"}) == "head and loss");
  CHECK(part({"forward", "head", "aten::cross_entropy_loss"}) == "head and loss");
  CHECK(part({"forward", "embedding"}) == "embedding");
  CHECK(part({"forward", "aten::add"}) == "embedding");
  CHECK(part({"backward", "lm_head"}, category::temporary) == "backward");
  CHECK(part({"gradients of mlp", "MmBackward0", "aten::mm"}, category::other) == "backward");
  CHECK(part({"backward", "block", "recomputation", "block", "mlp"}) == "recomputation");
}

TEST_CASE("waterfall: a category says the part, whatever the operation") {
  CHECK(place_of({}, category::parameter).part == "parameters");
  CHECK(place_of({"aten::empty"}, category::parameter).part == "parameters");
  CHECK(place_of({"adamw"}, category::optimizer_state).part == "optimizer state");
  CHECK(place_of({"backward", "lm_head", "parameter_gradient"}, category::gradient).part == "gradients");
  CHECK(place_of({"gradients of head", "MmBackward0", "aten::mm"}, category::gradient).part == "gradients");
  CHECK(place_of({"adamw"}, category::temporary).part == "optimizer");
}

TEST_CASE("waterfall: an operation that no rule knows is a part of its own; given rules come first") {
  const path unknown{"encoder", "layer", "attn", "aten::bmm", "aten::empty"};
  CHECK(place_of(unknown, category::other).part == "encoder/layer/attn");
  CHECK(place_of(unknown, category::other).operation == "encoder/layer/attn/aten::bmm");
  CHECK(place_of({"aten::to", "aten::copy_"}, category::other).part == "(outside every operation)");
  CHECK(place_of({"aten::to", "aten::copy_"}, category::other).operation == "aten::to");
  CHECK(place_of({}, category::other).operation == "(outside every operation)");
  const std::vector<memprof::part_rule> rules{{"encoder/*/attn/**", "attention"}, {"**/mlp", "mlp"}, {"**", "the rest"}};
  CHECK(place_of(unknown, category::other, rules).part == "attention");
  CHECK(place_of({"a", "b", "mlp"}, category::parameter, rules).part == "mlp");
  CHECK(place_of({"mlp", "a"}, category::other, rules).part == "the rest");
}

TEST_CASE("waterfall: globs match names, and ** any number of them") {
  using memprof::detail::matches_glob;
  using memprof::detail::matches_path;
  CHECK(matches_glob("a*c", "abbc"));
  CHECK(matches_glob("a*b*c", "aXbYbZc"));
  CHECK_FALSE(matches_glob("a*c", "abb"));
  CHECK(matches_glob("*", ""));
  CHECK_FALSE(matches_glob("a", ""));
  CHECK(matches_path("a/**", {"a"}));
  CHECK(matches_path("**/c", {"a", "b", "c"}));
  CHECK(matches_path("a/**/c", {"a", "c"}));
  CHECK_FALSE(matches_path("a/*", {"a"}));
  CHECK_FALSE(matches_path("a", {"a", "b"}));
  CHECK_FALSE(matches_path("a/*/c", {"a", "b", "b", "c"}));
  CHECK_FALSE(matches_path("a", {}));
  CHECK(matches_path("**", {}));
}

TEST_CASE("waterfall: operations that only one column has are named, and layers that differ by a number are one row") {
  const memprof::waterfall found = make_waterfall(
      {column("estimate", {{{"h.0", "attn"}, category::activation, 100, 1}, {{"h.1", "attn"}, category::activation, 100, 1}}),
       column("run", {{{"h.0", "attn"}, category::activation, 100, 1},
                      {{"h.1", "attn"}, category::activation, 130, 1},
                      {{"conv1"}, category::activation, 5, 2},
                      {{"conv2"}, category::activation, 6, 1}})});
  check_sums(found);
  REQUIRE(found.parts.size() == 3);
  CHECK(found.parts[0].name == "h.*/attn");
  CHECK(found.parts[0].rows.at(0).paths == std::vector<std::int64_t>{2, 2});
  CHECK(found.parts[0].bytes == std::vector<std::int64_t>{200, 230});
  CHECK(found.parts[1].name == "conv2");
  CHECK(found.parts[1].rows.at(0).paths == std::vector<std::int64_t>{0, 1});
  CHECK(found.parts[2].name == "conv1");
  CHECK(found.parts[2].rows.at(0).blocks == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("waterfall: a number is kept where it tells nothing apart") {
  const memprof::waterfall found =
      make_waterfall({column("a", {{{"stage 2"}, category::other, 1, 1}}), column("b", {{{"stage 2"}, category::other, 1, 1}})});
  CHECK(found.parts.at(0).name == "stage 2");
}

TEST_CASE("waterfall: parts go by names alone where a column has no categories") {
  const std::vector<memprof::held_bytes> held{{{"aten::empty"}, category::parameter, 8, 1}};
  CHECK(make_waterfall({column("a", held), column("b", held)}).parts.at(0).name == "parameters");
  CHECK(make_waterfall({column("a", held), column("b", held, false)}).parts.at(0).name == "(outside every operation)");
}

TEST_CASE("waterfall: random columns sum to their peaks, and changes to those of the peaks") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random{seed};
  const path names{"forward", "block", "mlp", "head", "backward", "layer.1", "layer.2", "aten::mm", "MmBackward0", "x"};
  for (int round = 0; round < 50; ++round) {
    std::vector<compared_run> columns;
    for (int index = 0; index < 3; ++index) {
      std::vector<memprof::held_bytes> held;
      for (auto count = random() % 30; count != 0; --count) {
        path of;
        for (auto depth = random() % 5; depth != 0; --depth) of.push_back(names[random() % names.size()]);
        held.push_back({of, static_cast<category>(random() % memprof::detail::category_names.size()),
                        static_cast<std::int64_t>(random() % 1000), 1});
      }
      columns.push_back(column("c" + std::to_string(index), std::move(held), random() % 4 != 0));
    }
    check_sums(make_waterfall(std::move(columns)));
  }
}

TEST_CASE("waterfall: a profile that does not say what was live at its peak is refused") {
  memprof::profile source;
  source.provenance.file = "log.txt";
  memprof::space_profile& space = source.spaces.emplace_back();
  space.name = "dram";
  space.cumulative_peak = 100;
  CHECK_THROWS_MATCHES(compared_run_of("run", source, space, stack_table_of(source)), memprof::error,
                       MessageMatches(ContainsSubstring("the operations of 'log.txt' do not add up to the peak of dram")));
  CHECK_THROWS_MATCHES(make_waterfall({column("alone", {})}), memprof::error,
                       MessageMatches(ContainsSubstring("at least two columns")));
}

}  // namespace memprof_tests::analysis_waterfall
