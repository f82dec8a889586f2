#include "silent_output.hpp"

#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>

#include <memprof/trace/device_presets.hpp>

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/model.hpp>
#include <nano_gpt/options.hpp>
#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/train.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace memprof_tests::examples_nano_gpt_no_dispatch {

namespace {

using memprof::run_mode;

nano_gpt::options parse(std::initializer_list<const char*> arguments) {
  return nano_gpt::parse_options(std::vector<const char*>{arguments});
}

/// What `train` recorded for its only memory space.
memprof::space_profile profile_of(nano_gpt::options options) {
  const nano_gpt::corpus corpus{"the rain in spain stays mainly in the plain"};
  if (options.model.vocabulary_size == 0) options.model.vocabulary_size = corpus.vocabulary_size();
  {
    const silent_output silence;
    auto capture = memprof::begin_capture({.mode = options.mode, .device = options.device});
    nano_gpt::train(options, corpus);
  }
  return memprof::current_profile().space(options.memory_space());
}

/// Takes out what two runs of one program may differ in: addresses and times.
memprof::vector<memprof::segment_usage> without_addresses_and_times(memprof::vector<memprof::segment_usage> segments) {
  for (memprof::segment_usage& segment : segments) {
    segment.peak_time_ns = 0;
    for (memprof::live_block& block : segment.live_at_peak.largest_blocks) block.address = 0;
  }
  return segments;
}

const memprof::segment_usage& segment_named(const memprof::space_profile& space, std::string_view name) {
  for (const memprof::segment_usage& segment : space.segments) {
    if (segment.segment == name) return segment;
  }
  FAIL("there is no segment " << name);
  return space.segments.front();
}

/// None: elements in rows, as they are.
memprof::device_description device_named(std::string_view name) {
  return name.empty() ? memprof::device_description{} : memprof::device_preset(name);
}

/// The model of the published table: 22 layers, 2048 wide, 32 heads in 4 groups, MLP of 5632, sequences of 2048.
nano_gpt::options tiny_llama(std::size_t batch_size, bool memory_efficient) {
  nano_gpt::options options = parse(
      {"--config", "tinyllama-1.1b", "--vocabulary", "96", "--no-dispatch", "--device", "wormhole-12gb", "--dtype", "bf16"});
  options.batch_size = batch_size;
  options.model.memory_efficient = memory_efficient;
  return options;
}

}  // namespace

TEST_CASE("nano_gpt: with and without dispatch the segments are equal to the byte, whatever the options") {
  nano_gpt::options options = parse({"--layers", "2", "--heads", "4", "--d-model", "40", "--seq-len", "6", "--batch-size", "2",
                                     "--steps", "2", "--vocabulary", "33"});
  const bool is_llama = GENERATE(false, true);
  options.model.architecture = is_llama ? nano_gpt::architecture::llama : nano_gpt::architecture::gpt2;
  options.model.kv_heads = is_llama ? 2 : 0;
  options.model.mlp_width = is_llama ? 50 : 0;
  options.model.tied_output = GENERATE(false, true);
  options.model.memory_efficient = GENERATE(false, true);
  options.micro_batches = GENERATE(1U, 3U);
  options.dtype = GENERATE(memprof::dtype::float32, memprof::dtype::bfloat16, memprof::dtype::float16);
  const std::string device = GENERATE("", "wormhole-12gb", "gpu-80gb");
  options.device = device_named(device);
  INFO((is_llama ? "llama" : "gpt2") << (options.model.tied_output ? ", tied" : "")
                                     << (options.model.memory_efficient ? ", memory-efficient" : "") << ", micro-batches "
                                     << options.micro_batches << ", " << memprof::to_string(options.dtype) << ", " << device);

  options.mode = run_mode::normal;
  const memprof::space_profile real = profile_of(options);
  options.mode = run_mode::no_dispatch;
  const memprof::space_profile simulated = profile_of(options);
  REQUIRE(memprof::current_profile().mode == run_mode::no_dispatch);
  REQUIRE(real.segments.size() == 3 + 2 * (2 * options.micro_batches + 1));
  REQUIRE(real.cumulative_peak > 0);
  REQUIRE(without_addresses_and_times(real.segments) == without_addresses_and_times(simulated.segments));
}

TEST_CASE("nano_gpt: each micro-batch has its own FORWARD_PASS and BACKWARD_PASS") {
  nano_gpt::options options = parse({"--layers", "1", "--heads", "2", "--d-model", "8", "--seq-len", "4", "--batch-size", "2",
                                     "--steps", "1", "--micro-batches", "2"});
  const memprof::space_profile space = profile_of(options);
  std::vector<std::string> names;
  for (const memprof::segment_usage& segment : space.segments) names.push_back(segment.segment);
  REQUIRE(names == std::vector<std::string>{"MODEL_CREATION", "OPTIMIZER_CREATION", "FORWARD_PASS", "BACKWARD_PASS",
                                            "FORWARD_PASS", "BACKWARD_PASS", "OPTIMIZER_STEP", "END_TRACE"});
  // Gradients come into being in the first backward pass; the second adds to them and only frees.
  const std::int64_t gradients = space.segments[0].segment_change;
  REQUIRE(space.segments[3].segment_change - space.segments[5].segment_change == gradients);
}

TEST_CASE("nano_gpt: a type that is only counted takes its bytes, in rows and in tiles") {
  nano_gpt::options options = parse({"--no-dispatch", "--config", "tinyllama-1.1b", "--layers", "1", "--d-model", "64", "--heads",
                                     "2", "--kv-heads", "1", "--mlp-width", "96", "--vocabulary", "64", "--seq-len", "32"});
  // Table and output 64 x 64 each, qkv 64 x 128, projection 64 x 64, MLP 64 x 192 and 96 x 64, three norms of 64.
  constexpr std::int64_t matrix_elements = 2 * 64 * 64 + 64 * 128 + 64 * 64 + 64 * 192 + 96 * 64;
  constexpr std::int64_t norms = 3;
  constexpr std::int64_t table_elements = 2 * 32 * 16;  // cosines and sines of 32 positions, 16 pairs each
  options.dtype = memprof::dtype::float8;
  CHECK(segment_named(profile_of(options), "MODEL_CREATION").segment_change == matrix_elements + norms * 64 + table_elements);

  options.dtype = memprof::dtype::block_float4;
  options.device = memprof::device_preset("wormhole-12gb");
  // A tile of 1024 elements is 576 bytes; a norm is one row of two tiles, a table half a tile wide.
  constexpr std::int64_t tiles = matrix_elements / 1024 + norms * 2 + 2;
  CHECK(segment_named(profile_of(options), "MODEL_CREATION").segment_change == tiles * 576);
}

TEST_CASE("nano_gpt: the configs have the published numbers of parameters") {
  // A GPT-2 of width C: 12 C^2 + 13 C a block, 2 C for the last norm, tables of V + T rows that serve as output as well.
  const auto gpt2 = [](std::size_t layers, std::size_t c) { return layers * (12 * c * c + 13 * c) + 2 * c + (50257 + 1024) * c; };
  // A Llama: queries and outputs C^2, keys and values C * kv, MLP 3 C * M, two norms a block; table, output, last norm.
  const auto llama = [](std::size_t layers, std::size_t c, std::size_t kv, std::size_t m) {
    return layers * (2 * c * c + 2 * c * kv + 3 * c * m + 2 * c) + 2 * 32000 * c + c;
  };
  struct published {
    const char* name;
    std::size_t parameters;
    std::size_t computed;
  };
  const published model =
      GENERATE_COPY(published{"gpt2-124m", 124'439'808, gpt2(12, 768)}, published{"gpt2-1.5b", 1'557'611'200, gpt2(48, 1600)},
                    published{"tinyllama-1.1b", 1'100'048'384, llama(22, 2048, 256, 5632)},
                    published{"llama-7b", 6'738'415'616, llama(32, 4096, 4096, 11008)},
                    published{"llama-70b", 68'976'648'192, llama(80, 8192, 1024, 28672)});
  INFO(model.name);
  REQUIRE(model.computed == model.parameters);
#if defined(__SANITIZE_THREAD__)
  // It leaves a program between 0.5 and 1.5 TiB of addresses, by chance; parameters and gradients of the largest take 0.502.
  if (model.parameters > 60'000'000'000) SKIP("the thread sanitizer has too few addresses for llama-70b");
#endif

  auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch});
  memprof::memory_resource memory{"cpu"};
  nano_gpt::random_stream random{1};
  nano_gpt::gpt<float> counted{parse({"--config", model.name}).model, random, &memory};
  REQUIRE(counted.parameter_count() == model.parameters);
}

TEST_CASE("nano_gpt: TinyLlama on 32 x 32 tiles has the published sizes") {
  // The seed document's table, "TinyLlama Results Analysis"; docs/no_dispatch.md shows it side by side with ours.
  const auto differs = [](std::int64_t bytes, double published_mebibytes) {
    return std::abs(static_cast<double>(bytes) / (1024.0 * 1024.0) / published_mebibytes - 1);
  };
  const memprof::space_profile dram = profile_of(tiny_llama(1, false));
  const std::int64_t model = segment_named(dram, "MODEL_CREATION").segment_change;
  const std::int64_t optimizer = segment_named(dram, "OPTIMIZER_CREATION").segment_change;
  CHECK(differs(model, 1863.25) < 0.01);
  CHECK(differs(optimizer, 3708.76) < 0.001);
  const memprof::space_profile efficient = profile_of(tiny_llama(1, true));
  CHECK(differs(segment_named(efficient, "FORWARD_PASS").segment_change, 192.95) < 0.001);
  CHECK(differs(segment_named(efficient, "BACKWARD_PASS").segment_change, 1663.07) < 0.001);
  CHECK(differs(efficient.cumulative_peak, 8278.65) < 0.05);

  // Matrices have whole tiles of two bytes an element; each of the 45 norms is padded from one row to 32.
  constexpr std::int64_t block = 2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 5632;
  constexpr std::int64_t weights = 2 * (22 * block + 2 * 96 * 2048) + 45 * 32 * 2048 * 2;
  constexpr std::int64_t rotary_tables = 2 * 2048 * 32 * 2;  // cosines and sines: 2048 positions, 32 pairs in a head
  CHECK(model == weights + rotary_tables);
  CHECK(optimizer == 2 * weights);
}

TEST_CASE("nano_gpt: recomputing activations lets TinyLlama fit where it did not") {
  const std::int64_t capacity = memprof::device_preset("wormhole-12gb").tensor_space().capacity;
  const memprof::space_profile whole = profile_of(tiny_llama(2, false));
  const memprof::space_profile efficient = profile_of(tiny_llama(2, true));
  CHECK(whole.cumulative_peak > capacity);
  CHECK(efficient.cumulative_peak < capacity);
  CHECK(static_cast<double>(efficient.cumulative_peak) <= 0.55 * static_cast<double>(whole.cumulative_peak));
  // Kept are the inputs of 22 blocks, then the last block's output and that normalised, two sequences of 2048 vectors of 2048
  // numbers of two bytes each; the norm's statistic, one row of 4096; 96 probabilities a token; and two rows of tiles of int32
  // tokens and targets.
  constexpr std::int64_t tokens = 2 * 2048;
  constexpr std::int64_t kept = 24 * tokens * 2048 * 2 + 32 * tokens * 2 + tokens * 96 * 2 + 2 * (32 * 2048 * 4);
  CHECK(segment_named(efficient, "FORWARD_PASS").segment_change == kept);
}

TEST_CASE("nano_gpt: a step of 70 billion parameters takes less than 1 GiB of the process") {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("a sanitizer's own memory would be measured");
#endif
  const memprof::space_profile space = profile_of(parse({"--config", "llama-70b", "--no-dispatch", "--batch-size", "4"}));
  CHECK(space.cumulative_peak > std::int64_t{3} * 4 * 68'976'648'192);  // parameters and two moments, 4 bytes each
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < 1024 * 1024);  // KiB: the highest that this process ever had
}

}  // namespace memprof_tests::examples_nano_gpt_no_dispatch
