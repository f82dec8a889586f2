#include <memprof/toolkit/analysis/what_if.hpp>

#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/trace/trace.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

/// @file
/// Answers of what-if, confirmed by runs without dispatch in which the change was really made.

namespace memprof_tests::analysis_what_if_confirmed {

using memprof::block_history;
using memprof::what_if_change;

namespace {

struct simulated {
  std::int64_t peak = 0;
  block_history history;
};

simulated run(nano_gpt::options options) {
  options.mode = memprof::run_mode::no_dispatch;
  memprof::trace events;
  const nano_gpt::measured_step step = nano_gpt::measure_one_step(options, 1e-3, &events);
  REQUIRE_FALSE(step.ran_out_of_memory);
  return {step.profile.space(options.memory_space()).cumulative_peak,
          memprof::read_block_history(events, options.memory_space(), true)};
}

nano_gpt::options model_of(nano_gpt::architecture architecture, std::size_t layers) {
  nano_gpt::options options;
  options.model = {.vocabulary_size = 200, .seq_len = 64, .layers = layers, .heads = 4, .d_model = 64};
  options.model.architecture = architecture;
  if (architecture == nano_gpt::architecture::llama) {
    options.model.kv_heads = 2;
    options.model.mlp_width = 160;
  }
  options.batch_size = 8;
  return options;
}

/// Both architectures, with few layers and many.
template <class Check>
void for_each_model(Check&& check) {
  for (const nano_gpt::architecture architecture : {nano_gpt::architecture::gpt2, nano_gpt::architecture::llama}) {
    for (const std::size_t layers : {1U, 2U, 6U}) {
      INFO((architecture == nano_gpt::architecture::llama ? "llama, " : "gpt2, ") << layers << " layers");
      check(model_of(architecture, layers));
    }
  }
}

void check_within_a_percent(std::int64_t answer, std::int64_t really) {
  CHECK_THAT(static_cast<double>(answer), Catch::Matchers::WithinRel(static_cast<double>(really), 0.01));
}

}  // namespace

TEST_CASE("what if: a larger batch, found from two runs, has the peak of a run with that batch") {
  for_each_model([](nano_gpt::options options) {
    const simulated eight = run(options);
    options.batch_size = 12;
    const simulated twelve = run(options);
    for (const std::size_t batch : {2U, 16U, 40U}) {
      options.batch_size = batch;
      const double factor = static_cast<double>(batch) / 8;
      const auto found = what_if(eight.history, {.batch = what_if_change::batching{.factor = factor, .other = &twelve.history}});
      CHECK(found.before.bytes == eight.peak);
      CHECK(found.price.batch_ratio == 1.5);
      check_within_a_percent(found.after.bytes, run(options).peak);
    }
  });
}

TEST_CASE("what if: another element type has the peak of a run with that type") {
  for_each_model([](nano_gpt::options options) {
    const simulated whole = run(options);
    options.dtype = memprof::dtype::bfloat16;
    const std::int64_t really = run(options).peak;
    // Tokens, which have another one, are the batch's.
    const auto found = what_if(whole.history, {.types = {{"forward", "fp32", "bf16"},
                                                         {"backward", "fp32", "bf16"},
                                                         {"adamw", "fp32", "bf16"},
                                                         {"(outside every operation)", "fp32", "bf16"}}});
    check_within_a_percent(found.after.bytes, really);
  });
}

TEST_CASE("what if: recomputed blocks have the peak of a run that recomputes them") {
  for_each_model([](nano_gpt::options options) {
    const simulated whole = run(options);
    options.model.memory_efficient = true;
    const simulated efficient = run(options);
    const auto found = what_if(whole.history, {.recompute = {"forward/block"}});
    CHECK(found.price.recomputed_calls == static_cast<std::int64_t>(options.model.layers));
    check_within_a_percent(found.after.bytes, efficient.peak);
    // The price is what the real run allocates in its recomputation.
    std::int64_t recomputed = 0;
    std::int64_t blocks = 0;
    for (const memprof::history_block& block : efficient.history.blocks) {
      const auto path = efficient.history.path(block.operation);
      if (path.size() < 3 || path[2] != "recomputation") continue;
      recomputed += block.bytes;
      ++blocks;
    }
    CHECK(found.price.recomputed_bytes == recomputed);
    CHECK(found.price.recomputed_allocations == blocks);
  });
}

TEST_CASE("what if: blocks freed at their last use have the peak of a run that frees them as soon as it can") {
  for_each_model([](nano_gpt::options options) {
    const std::int64_t early = run(options).peak;
    options.free_late = options.record_uses = true;
    const simulated late = run(options);
    const auto found = what_if(late.history, {.free_at_last_use = true});
    CHECK(found.before.bytes == late.peak);
    CHECK(found.price.unused_bytes == 0);
    check_within_a_percent(found.after.bytes, early);
  });
}

TEST_CASE("what if: a step without its optimizer's state has the peak of one without an optimizer") {
  const nano_gpt::options options = model_of(nano_gpt::architecture::gpt2, 2);
  const simulated whole = run(options);
  std::int64_t state = 0;
  for (const memprof::history_block& block : whole.history.blocks) {
    if (block.category == memprof::category::optimizer_state) state += block.bytes;
  }
  // It is live from the model's creation on, so whatever else makes the peak does so without it.
  CHECK(what_if(whole.history, {.without = {"adamw"}}).after.bytes == whole.peak - state);
  CHECK(what_if(whole.history, {.without_categories = {memprof::category::optimizer_state}}).after.bytes == whole.peak - state);
}

}  // namespace memprof_tests::analysis_what_if_confirmed
