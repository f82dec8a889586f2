#include <memprof/toolkit/estimate/training_step.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/contradictions.hpp>
#include <memprof/trace/device_presets.hpp>

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>
#include <nano_gpt/train.hpp>
#include <unit/examples/silent_output.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::analysis_estimate_training_step {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::decoder_model;
using memprof::estimate_training_step;
using memprof::recomputation_kind;
using memprof::training_estimate;
using memprof::training_setup;

namespace {

/// What examples/nano_gpt allocates for the same model and setup, without dispatch.
memprof::space_profile measured(const decoder_model& model, const training_setup& setup) {
  nano_gpt::options options = nano_gpt::options_for(model, setup);
  options.steps = 1;
  options.mode = memprof::run_mode::no_dispatch;
  {
    const silent_output silence;
    auto capture = memprof::begin_capture({.mode = options.mode, .device = options.device});
    nano_gpt::train(options, nano_gpt::corpus{"no token is looked at"});
  }
  return memprof::current_profile().space(options.memory_space());
}

/// Everything of a segment but when it was and where its blocks were.
memprof::segment_usage comparable(memprof::segment_usage usage) {
  usage.peak_time_ns = 0;
  for (memprof::live_block& block : usage.live_at_peak.largest_blocks) {
    const std::int64_t bytes = block.bytes;
    block = {};
    block.bytes = bytes;
  }
  return usage;
}

void check_equal(const decoder_model& model, const training_setup& setup) {
  const training_estimate estimate = estimate_training_step(model, setup);
  const memprof::space_profile& expected = measured(model, setup);
  REQUIRE(estimate.space().segments.size() == expected.segments.size());
  for (std::size_t index = 0; index < expected.segments.size(); ++index) {
    INFO("segment " << expected.segments[index].segment);
    CHECK(comparable(estimate.space().segments[index]) == comparable(expected.segments[index]));
  }
  CHECK(estimate.space().cumulative_peak == expected.cumulative_peak);
  CHECK(estimate.space().first_shortfall.requested == expected.first_shortfall.requested);
}

/// A small model in the manner of either family.
decoder_model small_gpt2() { return {.layers = 3, .d_model = 24, .heads = 4, .vocabulary = 50}; }
decoder_model small_llama() {
  return {.family = memprof::decoder_family::llama,
          .layers = 2,
          .d_model = 32,
          .heads = 4,
          .kv_heads = 2,
          .mlp_width = 40,
          .vocabulary = 50};
}

/// Bytes after the segment of that name.
std::int64_t after(const training_estimate& estimate, const std::string& segment) {
  std::int64_t bytes = -1;
  for (const memprof::segment_usage& usage : estimate.space().segments) {
    if (usage.segment == segment) bytes = usage.cumulative_current;
  }
  return bytes;
}

/// What the forward pass of one micro-batch keeps, without the batch.
std::int64_t kept(const training_estimate& estimate, const training_setup& setup) {
  const std::int64_t batch = 2 * 4 * setup.batch_size * setup.seq_len;
  return after(estimate, "FORWARD_PASS") - after(estimate, "OPTIMIZER_CREATION") - batch;
}

}  // namespace

TEST_CASE("training step: parameters of published decoders are as many as published") {
  const auto count = [](const char* name) {
    const memprof::named_decoder& decoder = memprof::find_decoder(name);
    return parameter_count(decoder.model, decoder.seq_len);
  };
  CHECK(count("gpt2-124m") == 124'439'808);
  CHECK(count("gpt2-355m") == 354'823'168);
  CHECK(count("gpt2-774m") == 774'030'080);
  CHECK(count("gpt2-1.5b") == 1'557'611'200);
  CHECK(count("tinyllama-1.1b") == 1'100'048'384);
  CHECK(count("llama-7b") == 6'738'415'616);
  CHECK(count("llama-70b") == 68'976'648'192);
  CHECK(count("mixtral-8x7b") == 46'702'792'704);
}

TEST_CASE("training step: every segment of published models is that of the plain trainer without dispatch, to the byte") {
  for (const char* const name : {"gpt2-124m", "gpt2-1.5b", "tinyllama-1.1b", "llama-7b"}) {
    const memprof::named_decoder& decoder = memprof::find_decoder(name);
    for (const std::int64_t batch_size : {1, 3}) {
      for (const std::int64_t seq_len : {decoder.seq_len, decoder.seq_len / 4}) {
        for (const recomputation_kind recompute : {recomputation_kind::off, recomputation_kind::blocks}) {
          INFO(name << ", batch " << batch_size << ", sequence " << seq_len
                    << (recompute == recomputation_kind::off ? "" : ", recomputed"));
          check_equal(decoder.model, {.batch_size = batch_size, .seq_len = seq_len, .recompute = recompute});
        }
      }
    }
  }
}

TEST_CASE("training step: the same holds for other dtypes, devices, micro-batches and tied outputs") {
  for (decoder_model model : {small_gpt2(), small_llama()}) {
    for (const bool tied : {false, true}) {
      model.tied_output = tied;
      for (const std::int64_t micro_batches : {1, 3}) {
        for (const recomputation_kind recompute : {recomputation_kind::off, recomputation_kind::blocks}) {
          training_setup setup{.batch_size = 2, .seq_len = 33, .micro_batches = micro_batches, .recompute = recompute};
          check_equal(model, setup);
          setup.type = memprof::dtype::bfloat16;
          setup.device = memprof::device_preset("gpu-24gb");
          check_equal(model, setup);
          setup.device = memprof::device_preset("wormhole-12gb");
          check_equal(model, setup);
          setup.type = memprof::dtype::block_float8;
          check_equal(model, setup);
        }
      }
    }
  }
}

TEST_CASE("training step: what does not fit a device is kind as in a capture") {
  training_setup setup{.seq_len = 4096, .type = memprof::dtype::bfloat16, .device = memprof::device_preset("gpu-80gb")};
  const training_estimate estimate = estimate_training_step(memprof::find_decoder("llama-7b").model, setup);
  const memprof::space_profile& space = estimate.space();
  CHECK(space.name == "cuda:0");
  CHECK(space.capacity == std::int64_t{81'050} << 20);
  CHECK(space.cumulative_peak > space.capacity);
  CHECK(space.first_shortfall.operation == "forward/block/attention/scores");
  CHECK(estimate.step.device == "gpu-80gb");
  CHECK(estimate.step.mode == memprof::run_mode::no_dispatch);
}

TEST_CASE("training step: a layer keeps what Korthikanti et al. (arXiv:2205.05198) say, without dropout") {
  // Table 2 counts, in 16 bits, s b h (34 + 5 a s / h) bytes a layer: 32 and 2 without the masks and results of dropout, of which
  // 8 and 0 are not divided by tensor parallelism. Means and deviations of the normalisations, 8 bytes a position, are not in it.
  const std::int64_t s = 64, b = 2, h = 48, a = 4;
  const auto layer = [&](training_setup setup) {
    decoder_model model{.layers = 1, .d_model = h, .heads = a, .vocabulary = 32};
    setup.batch_size = b;
    setup.seq_len = s;
    setup.type = memprof::dtype::float16;
    const std::int64_t one = kept(estimate_training_step(model, setup), setup);
    model.layers = 2;
    return kept(estimate_training_step(model, setup), setup) - one;
  };
  CHECK(layer({}) == s * b * (32 * h + 2 * a * s) + 8 * s * b);
  for (const std::int64_t t : {2, 4}) {
    training_setup setup;
    setup.parallel.tensor = t;
    CHECK(layer(setup) == s * b * (8 * h + (24 * h + 2 * a * s) / t) + 8 * s * b);
  }
  CHECK(layer({.recompute = recomputation_kind::blocks}) == 2 * s * b * h);
  CHECK(layer({.attention = memprof::attention_kind::recomputed}) == s * b * 32 * h + 8 * s * b);
  // Fused: a float32 for each row of the scores.
  CHECK(layer({.attention = memprof::attention_kind::fused}) == s * b * 32 * h + 8 * s * b + 4 * a * s * b);
}

TEST_CASE("training step: selective recomputation keeps fused attention and every second matrix product of a layer") {
  const std::int64_t s = 64, b = 2, h = 32, kv = 16, a = 4, f = 40;
  const auto layer = [&](decoder_model model, memprof::attention_kind attention, std::int64_t tensor_parallel = 1) {
    const training_setup setup{.batch_size = b,
                               .seq_len = s,
                               .type = memprof::dtype::bfloat16,
                               .attention = attention,
                               .recompute = recomputation_kind::selective,
                               .layers = memprof::torch_layers,
                               .parallel = {.tensor = tensor_parallel}};
    model.layers = 1;
    const std::int64_t one = kept(estimate_training_step(model, setup), setup);
    model.layers = 2;
    return kept(estimate_training_step(model, setup), setup) - one;
  };
  const decoder_model llama = small_llama();
  const auto fused = memprof::attention_kind::fused;
  // The input; of q, k, v, the output, gate, up and down the products q, v, gate and down; attention and its float32 a row.
  CHECK(layer(llama, fused) == 2 * s * b * (h + (h + kv + f + h) + h) + 4 * a * s * b);
  CHECK(layer(llama, memprof::attention_kind::plain) == 2 * s * b * (h + (h + kv + f + h)));
  CHECK(layer(llama, fused, 2) == 2 * s * b * (h + (h / 2 + kv / 2 + f / 2 + h) + h / 2) + 4 * a / 2 * s * b);
  // Of qkv, projection, expand and contract: the first and the third.
  const decoder_model gpt2{.d_model = h, .heads = a, .vocabulary = 32};
  CHECK(layer(gpt2, fused) == 2 * s * b * (h + (3 * h + 4 * h) + h) + 4 * a * s * b);
}

TEST_CASE("training step: what is recomputed is there for the backward pass and leaves nothing") {
  const auto of = [](recomputation_kind recompute) {
    return estimate_training_step(small_llama(), {.batch_size = 2,
                                                  .seq_len = 512,
                                                  .type = memprof::dtype::bfloat16,
                                                  .attention = memprof::attention_kind::fused,
                                                  .recompute = recompute,
                                                  .layers = memprof::torch_layers});
  };
  const training_estimate off = of(recomputation_kind::off), selective = of(recomputation_kind::selective),
                          blocks = of(recomputation_kind::blocks);
  CHECK(off.space().cumulative_peak > selective.space().cumulative_peak);
  CHECK(selective.space().cumulative_peak > blocks.space().cumulative_peak);
  // What is kept is not allocated again.
  CHECK(selective.space().allocations > off.space().allocations);
  CHECK(selective.space().allocations < blocks.space().allocations);
  CHECK(selective.space().cumulative_current == off.space().cumulative_current);
  CHECK(selective.space().anomalies == memprof::space_anomalies{});
}

TEST_CASE("training step: logits in float32 add a copy, and double what the loss keeps and makes") {
  const std::int64_t b = 2, s = 16, v = 5000;
  const decoder_model model{.layers = 1, .d_model = 8, .heads = 1, .vocabulary = v};
  training_setup setup{.batch_size = b, .seq_len = s, .type = memprof::dtype::bfloat16, .layers = memprof::torch_layers};
  const auto peak = [&] { return estimate_training_step(model, setup).space().cumulative_peak; };
  const auto after_forward = [&] { return kept(estimate_training_step(model, setup), setup); };
  const std::int64_t in_half = after_forward();
  const std::int64_t peak_in_half = peak();
  setup.float32_logits = true;
  CHECK(after_forward() - in_half == 2 * b * s * v);
  // At the peak: the probabilities, their gradient and that of the logits.
  CHECK(peak() - peak_in_half == 3 * 2 * b * s * v);
  setup.type = memprof::dtype::float32;  // nothing to copy
  const std::int64_t asked = peak();
  setup.float32_logits = false;
  CHECK(peak() == asked);
}

TEST_CASE("training step: devices that share a sequence hold a part of it, and gather keys and values") {
  const std::int64_t s = 512, c = 4, kv = 16;
  const decoder_model model = small_llama();
  training_setup setup{.batch_size = 2,
                       .seq_len = s,
                       .type = memprof::dtype::bfloat16,
                       .attention = memprof::attention_kind::fused,
                       .layers = memprof::torch_layers,
                       .parallel = {.context = c}};
  const training_estimate divided = estimate_training_step(model, setup);
  setup.seq_len = s / c;
  setup.parallel.context = 1;
  const training_estimate short_one = estimate_training_step(model, setup);
  // What is kept is that of the shorter sequence.
  CHECK(after(divided, "FORWARD_PASS") - after(divided, "OPTIMIZER_CREATION") ==
        after(short_one, "FORWARD_PASS") - after(short_one, "OPTIMIZER_CREATION"));
  // Allocated besides: in each of two layers keys and values once forward, and they and their gradient backward; and the
  // rotary tables of the whole sequence.
  const std::int64_t gathered = 2 * s * 2 * kv * 2, tables = 2 * (s - s / c) * (8 / 2) * 2;
  CHECK(divided.space().allocations - short_one.space().allocations == 2 * 3 * gathered + tables);
  // They divide parameters and what belongs to them like replicas.
  setup.seq_len = s;
  setup.parallel = {.data = 2, .context = 4, .zero_stage = 3};
  const std::int64_t both = after(estimate_training_step(model, setup), "OPTIMIZER_CREATION");
  setup.parallel = {.data = 8, .zero_stage = 3};
  CHECK(both == after(estimate_training_step(model, setup), "OPTIMIZER_CREATION"));
}

TEST_CASE("training step: recomputed attention has the plain one's peak within a layer, and not its sum over layers") {
  const decoder_model model{.layers = 12, .d_model = 64, .heads = 8, .vocabulary = 32};
  const auto peak = [&](memprof::attention_kind attention) {
    return estimate_training_step(model, {.batch_size = 1, .seq_len = 256, .attention = attention}).space().cumulative_peak;
  };
  const std::int64_t probabilities = 4 * 8 * 256 * 256;
  CHECK(peak(memprof::attention_kind::plain) - peak(memprof::attention_kind::recomputed) == 11 * probabilities);
  CHECK(peak(memprof::attention_kind::fused) < peak(memprof::attention_kind::recomputed) - probabilities);
}

TEST_CASE("training step: replicas divide what ZeRO (arXiv:1910.02054) divides") {
  // Figure 1: (2 + 2 + K) bytes a parameter with K = 12 for Adam's two moments and a float32 copy of the parameters.
  const decoder_model model = memprof::find_decoder("llama-7b").model;
  training_setup setup{.seq_len = 8, .type = memprof::dtype::float16, .master_weights = true};
  const auto per_parameter = [&](int stage, std::int64_t replicas) {
    setup.parallel.zero_stage = stage;
    setup.parallel.data = replicas;
    const training_estimate estimate = estimate_training_step(model, setup);
    const std::int64_t batch = 2 * 4 * setup.seq_len;
    const std::int64_t rotary_tables = 2 * 2 * setup.seq_len * 64;
    return static_cast<double>(after(estimate, "BACKWARD_PASS") - batch - rotary_tables) /
           static_cast<double>(estimate.parameters);
  };
  CHECK(per_parameter(0, 64) == 16.0);
  CHECK(per_parameter(1, 1) == 16.0);
  const auto about = [](double value, double expected) { return value >= expected && value < expected + 1e-4; };
  CHECK(about(per_parameter(1, 64), 4 + 12.0 / 64));
  CHECK(about(per_parameter(2, 64), 2 + 14.0 / 64));
  CHECK(about(per_parameter(3, 64), 16.0 / 64));
}

TEST_CASE("training step: parameters that replicas divide are gathered a block at a time") {
  decoder_model model = small_llama();
  training_setup setup{.batch_size = 1, .seq_len = 2};
  setup.parallel = {.data = 4, .zero_stage = 3};
  const auto gathered = [&] {
    const training_estimate estimate = estimate_training_step(model, setup);
    const memprof::operation_profile* const operation = estimate.step.find_operation("forward/block/gathered_parameters");
    REQUIRE(operation != nullptr);
    return operation->usage.at(0);
  };
  // qkv 32 x 64, projection 32 x 32, gate and up 32 x 80, down 40 x 32, two gains of 32: 6976 numbers.
  CHECK(gathered().peak == 4 * (32 * 64 + 32 * 32 + 32 * 80 + 40 * 32 + 2 * 32));
  CHECK(gathered().allocation_count == 2);
  CHECK(gathered().live == 0);
}

TEST_CASE("training step: optimizers keep what they need") {
  const decoder_model model = small_gpt2();
  const auto state = [&](training_setup setup) {
    setup.batch_size = setup.seq_len = 1;
    const training_estimate estimate = estimate_training_step(model, setup);
    return after(estimate, "OPTIMIZER_CREATION") - after(estimate, "MODEL_CREATION");
  };
  using memprof::optimizer_kind;
  const std::int64_t parameters = parameter_count(model, 1);
  CHECK(state({.optimizer = optimizer_kind::sgd}) == 0);
  CHECK(state({.optimizer = optimizer_kind::momentum}) == 4 * parameters);
  CHECK(state({.optimizer = optimizer_kind::adam}) == 8 * parameters);
  CHECK(state({.type = memprof::dtype::bfloat16}) == 4 * parameters);
  CHECK(state({.type = memprof::dtype::bfloat16, .state_type = memprof::dtype::float32}) == 8 * parameters);
  CHECK(state({.type = memprof::dtype::bfloat16, .master_weights = true}) == 12 * parameters);
  CHECK(state({.type = memprof::dtype::bfloat16, .master_weights = true, .optimizer = optimizer_kind::sgd}) == 4 * parameters);

  // 8 bits: one matrix of 80 x 64 = 5120 elements has 20 blocks of 256; everything else here has fewer than 4096.
  const decoder_model one_large{.layers = 1, .d_model = 64, .heads = 1, .mlp_width = 1, .vocabulary = 80};
  const std::int64_t large = 2 * 80 * 64 + 3 * 64 * 64 + 64 * 64;  // token table, head, qkv and projection
  const std::int64_t small = parameter_count(one_large, 1) - large;
  const std::int64_t blocks = 2 * 20 + 48 + 16;
  training_setup setup{.batch_size = 1, .seq_len = 1, .optimizer = optimizer_kind::adam_8bit};
  const training_estimate estimate = estimate_training_step(one_large, setup);
  CHECK(after(estimate, "OPTIMIZER_CREATION") - after(estimate, "MODEL_CREATION") == 2 * large + 2 * 4 * blocks + 8 * small);
}

TEST_CASE("training step: a stage of a pipeline has as many micro-batches under way as stages are behind it") {
  decoder_model model{.layers = 8, .d_model = 48, .heads = 4, .vocabulary = 32};
  training_setup setup{.batch_size = 2, .seq_len = 64, .micro_batches = 8};
  setup.parallel.pipeline = 4;
  const std::int64_t position = 2 * 64;
  const std::int64_t layer = 4 * (position * 16 * 48 + 2 * 4 * 64 * 64) + 16 * position;
  const auto live_activations = [&](std::int64_t stage, std::int64_t micro_batches) {
    setup.pipeline_stage = stage;
    setup.micro_batches = micro_batches;
    const training_estimate estimate = estimate_training_step(model, setup);
    std::int64_t most = 0;
    for (const memprof::segment_usage& usage : estimate.space().segments) {
      if (usage.segment == "FORWARD_PASS") most = std::max(most, usage.cumulative_current);
    }
    const bool has_gradients = micro_batches > 4 - stage;
    const std::int64_t model_state = after(estimate, "OPTIMIZER_CREATION");
    return most - model_state - (has_gradients ? after(estimate, "MODEL_CREATION") : 0);
  };
  // Stage 0 has the embedding and tokens, and no head: 4 micro-batches of two layers each.
  const std::int64_t tokens = 4 * position;
  CHECK(live_activations(0, 1) == 2 * layer + tokens);
  CHECK(live_activations(0, 8) == 4 * (2 * layer + tokens));
  CHECK(live_activations(1, 8) == 3 * 2 * layer);
  CHECK(live_activations(2, 8) == 2 * 2 * layer);

  // The stage shown when none is asked for is the one with the greatest peak.
  setup.pipeline_stage = -1;
  const training_estimate greatest = estimate_training_step(model, setup);
  for (setup.pipeline_stage = 0; setup.pipeline_stage < 4; ++setup.pipeline_stage) {
    CHECK(estimate_training_step(model, setup).space().cumulative_peak <= greatest.space().cumulative_peak);
  }
  CHECK(greatest.pipeline_stage == 0);
}

TEST_CASE(
    "training step: all tensor-parallel parts together have every parameter, and norms and biases of sums as often as parts") {
  const decoder_model model{.layers = 3, .d_model = 64, .heads = 8, .vocabulary = 96};
  const auto bytes = [&](std::int64_t parts) {
    training_setup setup{.batch_size = 1, .seq_len = 4};
    setup.parallel.tensor = parts;
    return after(estimate_training_step(model, setup), "MODEL_CREATION");
  };
  // A block has two norms of 2 x 64 numbers and two biases of 64 that are added to sums; then the last norm, and 4 positions
  // of 64.
  const std::int64_t not_divided = 4 * (3 * (4 * 64 + 2 * 64) + 2 * 64 + 4 * 64);
  CHECK(4 * bytes(4) == bytes(1) + 3 * not_divided);
}

TEST_CASE("training step: experts keep as many tokens as the router chooses") {
  decoder_model model = small_llama();
  model.experts = 4;
  model.experts_per_token = 2;
  training_setup setup{.batch_size = 1, .seq_len = 16};
  model.layers = 1;
  const std::int64_t one = kept(estimate_training_step(model, setup), setup);
  model.layers = 2;
  const std::int64_t layer = kept(estimate_training_step(model, setup), setup) - one;
  // Input, two norms' results, qkv of 64, probabilities 4 x 16 x 16, context and middle; then of 2 x 16 tokens their copies, both
  // halves of the SwiGLU, its result and the experts' results, and the router's 4 numbers; a deviation for each position and
  // norm.
  const std::int64_t numbers = 16 * (32 + 32 + 64 + 32 + 32 + 32) + 4 * 16 * 16 + 2 * 16 * (32 + 80 + 40 + 32) + 16 * 4 + 2 * 16;
  CHECK(layer == 4 * numbers);
}

TEST_CASE("training step: no estimate contradicts itself, and it ends with what it began") {
  for (const decoder_model& model : {small_gpt2(), small_llama()}) {
    for (const memprof::attention_kind attention :
         {memprof::attention_kind::plain, memprof::attention_kind::fused, memprof::attention_kind::recomputed}) {
      for (const int zero_stage : {0, 1, 2, 3}) {
        training_setup setup{.batch_size = 2, .seq_len = 16, .micro_batches = 3, .attention = attention};
        setup.layers = memprof::torch_layers;
        setup.parallel = {.tensor = 2, .data = 3, .zero_stage = zero_stage};
        const training_estimate estimate = estimate_training_step(model, setup);
        CHECK(memprof::contradictions(estimate.step, estimate.space()).empty());
        CHECK(estimate.space().cumulative_current == after(estimate, "OPTIMIZER_CREATION"));
        CHECK(estimate.space().anomalies == memprof::space_anomalies{});
        CHECK(estimate.step.anomalies == memprof::event_anomalies{});
      }
    }
  }
}

TEST_CASE("training step: what cannot be is refused by name") {
  const auto refused = [](const decoder_model& model, const training_setup& setup, const char* text) {
    CHECK_THROWS_MATCHES((void)estimate_training_step(model, setup), memprof::error, MessageMatches(ContainsSubstring(text)));
  };
  refused({.heads = 5}, {}, "heads 5 does not divide d_model 768");
  refused({.heads = 12, .kv_heads = 5}, {}, "kv_heads 5 does not divide heads 12");
  refused({.layers = 0}, {}, "layers is 0, but must be from 1");
  refused({.family = memprof::decoder_family::llama, .d_model = 12, .heads = 4}, {}, "heads of odd width");
  refused({.experts = 4}, {}, "experts are modelled in blocks of the family llama only");
  refused({}, {.batch_size = 0}, "batch_size is 0, but must be from 1");
  refused({.positions = 1024}, {.seq_len = 1025}, "seq_len 1025 is longer than the 1024 positions");
  refused({}, {.parallel = {.tensor = 5}}, "tensor_parallel 5 does not divide heads 12");
  refused({.heads = 12, .kv_heads = 6}, {.parallel = {.tensor = 4}}, "kv_heads 6 does not divide tensor_parallel 4");
  refused({}, {.parallel = {.pipeline = 5}}, "pipeline_parallel 5 does not divide layers 12");
  refused({}, {.parallel = {.zero_stage = 4}}, "zero_stage is 4");
  refused({}, {.seq_len = 10, .parallel = {.context = 4}}, "context_parallel 4 does not divide seq_len 10");
  refused({}, {.recompute = recomputation_kind::selective}, "selective recomputation needs the layers of PyTorch");
  refused({}, {.float32_logits = true}, "float32 logits need the layers of PyTorch");
  refused(memprof::find_decoder("mixtral-8x7b").model,
          {.recompute = recomputation_kind::selective, .layers = memprof::torch_layers}, "not estimated for experts");
  refused({}, {.pipeline_stage = 1}, "pipeline_stage is 1, but must be at least -1 and less than 1");
  refused({}, {.batch_size = 1'000'000'000, .seq_len = 1'000'000'000}, "63 bits");
  refused({.layers = 100'000}, {.batch_size = 1'000'000, .seq_len = 100'000}, "63 bits");
  CHECK_THROWS_WITH(memprof::find_decoder("gpt5"), ContainsSubstring("unknown decoder 'gpt5'; known are gpt2-124m"));
}

}  // namespace memprof_tests::analysis_estimate_training_step
