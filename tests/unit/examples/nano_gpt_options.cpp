#include <nano_gpt/corpus.hpp>
#include <nano_gpt/input_error.hpp>
#include <nano_gpt/options.hpp>
#include <nano_gpt/tensor.hpp>

#include <memprof/trace/dtype.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

namespace memprof_tests::examples_nano_gpt_options {

namespace {

nano_gpt::options parse(std::initializer_list<const char*> arguments) {
  return nano_gpt::parse_options(std::vector<const char*>{arguments});
}

}  // namespace

// What is refused, and how, is tested on the program: examples/nano_gpt/checks/tests.cmake.
TEST_CASE("nano_gpt: every option sets its own value, in both spellings") {
  const nano_gpt::options options = parse({"--layers", "2", "--heads=3", "--d-model", "12", "--seq-len=5", "--batch-size", "7",
                                           "--steps=11", "--seed", "0", "--text=a=b.txt", "--json", "p.json"});
  REQUIRE(options.model.layers == 2);
  REQUIRE(options.model.heads == 3);
  REQUIRE(options.model.d_model == 12);
  REQUIRE(options.model.seq_len == 5);
  REQUIRE(options.batch_size == 7);
  REQUIRE(options.steps == 11);
  REQUIRE(options.seed == 0);
  REQUIRE(options.text == "a=b.txt");
  REQUIRE(options.json == "p.json");
}

TEST_CASE("nano_gpt: options may have underscores in place of hyphens, and values keep theirs") {
  const nano_gpt::options options =
      parse({"--batch_size", "7", "--d_model=12", "--no_dispatch", "--memory_efficient", "--track_memory", "--json", "a_b.json"});
  REQUIRE(options.batch_size == 7);
  REQUIRE(options.model.d_model == 12);
  REQUIRE(options.mode == memprof::run_mode::no_dispatch);
  REQUIRE(options.model.memory_efficient);
  REQUIRE(options.track_memory);
  REQUIRE(options.json == "a_b.json");
}

TEST_CASE("nano_gpt: heads are compared with the width after all options are read") {
  REQUIRE(parse({"--heads", "7", "--d-model", "49"}).model.heads == 7);
  REQUIRE_THROWS_AS(parse({"--heads", "65"}), nano_gpt::input_error);
}

TEST_CASE("nano_gpt: options for models and devices set their own value") {
  const nano_gpt::options options =
      parse({"--kv-heads", "2", "--mlp-width=24", "--vocabulary", "96", "--micro-batches=3", "--dtype", "bfp8", "--device",
             "wormhole-12gb", "--no-dispatch", "--memory-efficient"});
  REQUIRE(options.model.kv_heads == 2);
  REQUIRE(options.model.mlp_width == 24);
  REQUIRE(options.model.vocabulary_size == 96);
  REQUIRE(options.model.memory_efficient);
  REQUIRE(options.micro_batches == 3);
  REQUIRE(options.dtype == memprof::dtype::block_float8);
  REQUIRE(options.device.name.view() == "wormhole-12gb");
  REQUIRE(options.memory_space() == "dram");
  REQUIRE(options.mode == memprof::run_mode::no_dispatch);
}

TEST_CASE("nano_gpt: without options nothing but floats in plain memory is trained") {
  const nano_gpt::options options = parse({});
  REQUIRE(options.mode == memprof::run_mode::normal);
  REQUIRE(options.dtype == memprof::dtype::float32);
  REQUIRE(options.memory_space() == "cpu");
  REQUIRE_FALSE(options.model.memory_efficient);
  REQUIRE(options.micro_batches == 1);
  REQUIRE(options.batch_size == 16);
  REQUIRE(options.steps == 200);
}

TEST_CASE("nano_gpt: options override the numbers of a config, whatever stands first") {
  const nano_gpt::options options =
      parse({"--layers", "2", "--memory-efficient", "--config", "llama-70b", "--batch-size", "3", "--seq-len=32"});
  REQUIRE(options.model.layers == 2);
  REQUIRE(options.model.seq_len == 32);
  REQUIRE(options.batch_size == 3);
  REQUIRE(options.model.memory_efficient);
  REQUIRE(options.model.d_model == 8192);  // the config's
  REQUIRE(options.model.kv_heads == 8);
  REQUIRE(options.steps == 1);
}

TEST_CASE("nano_gpt: help wins over what stands behind it") { REQUIRE(parse({"--help", "--hats"}).help); }

TEST_CASE("nano_gpt: a text becomes the numbers of its bytes, and targets are the tokens after") {
  const nano_gpt::corpus corpus{std::string{"b\xff"} + "ab"};
  REQUIRE(corpus.vocabulary() == "ab\xff");  // sorted as unsigned bytes
  REQUIRE(corpus.size() == 4);
  nano_gpt::random_stream random{1};
  // One place only for three tokens and their successor.
  const nano_gpt::batch batch = corpus.sample(1, 3, random, std::pmr::new_delete_resource());
  REQUIRE(std::vector<std::int32_t>(batch.tokens.elements().begin(), batch.tokens.elements().end()) ==
          std::vector<std::int32_t>{1, 2, 0});
  REQUIRE(std::vector<std::int32_t>(batch.targets.elements().begin(), batch.targets.elements().end()) ==
          std::vector<std::int32_t>{2, 0, 1});
}

TEST_CASE("nano_gpt: batches reach both ends of the text") {
  const nano_gpt::corpus corpus{"abcd"};
  nano_gpt::random_stream random{1};
  const nano_gpt::batch batch = corpus.sample(64, 1, random, std::pmr::new_delete_resource());
  std::vector<bool> seen(4, false);
  for (const std::int32_t token : batch.tokens.elements()) seen[static_cast<std::size_t>(token)] = true;
  REQUIRE(seen == std::vector<bool>{true, true, true, false});  // nothing follows the last character
}

TEST_CASE("nano_gpt: a tensor whose bytes do not fit the address space is refused, not wrapped") {
  constexpr std::size_t half = std::size_t{1} << 32U;
  REQUIRE_THROWS_AS((nano_gpt::extents{half, half}.count(4)), std::bad_array_new_length);
  REQUIRE_THROWS_AS((nano_gpt::extents{half, half / 8}.count(4)), std::bad_array_new_length);  // 2^63 bytes: one too many
  REQUIRE((nano_gpt::extents{half, half / 16}.count(4)) == half * (half / 16));
}

}  // namespace memprof_tests::examples_nano_gpt_options
