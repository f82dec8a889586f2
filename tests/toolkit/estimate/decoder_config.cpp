#include <memprof/toolkit/estimate/decoder_config_json.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof_tests::analysis_decoder_config {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using memprof::decoder_shape;
using memprof::parse_decoder_config;

namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse_decoder_config(text, {}, "config.json");
  } catch (const memprof::error& problem) {
    return problem.what();
  }
  return "no error";
}

const std::string start = "cannot read a decoder's dimensions from 'config.json': ";

}  // namespace

TEST_CASE("decoder config: a run_config.json has all sizes, and defaults where it lacks one") {
  CHECK(parse_decoder_config("{}").shape == decoder_shape{});
  CHECK(parse_decoder_config("{}", {.batch_size = 1, .seq_len = 2}).shape == decoder_shape{});  // not those of the caller
  const auto config = parse_decoder_config(R"({"model": {"d_model": 128, "n_heads": 8, "layers": 2},
      "train": {"batch_size": 256, "seq_len": 128, "learning_rate": 0.001},
      "tokenizer": {"base_vocab_size": 100, "num_special_tokens": 3}})");
  CHECK(config.shape == decoder_shape{256, 128, 128, 8, 2, 100, 3});
  CHECK(!config.model);
}

TEST_CASE("decoder config: sections may be wrapped as Weights & Biases does") {
  const auto config = parse_decoder_config(R"({"_wandb": {"value": {}}, "model": {"desc": null, "value": {"layers": 3}},
      "train": {"value": {"micro_batch_size": 4, "effective_batch_size": 64}}, "tokenizer": {"base_vocab_size": 7}})");
  CHECK(config.shape.layers == 3);
  CHECK(config.shape.batch_size == 4);
  CHECK(config.shape.base_vocab_size == 7);
  CHECK(parse_decoder_config(R"({"train": {"effective_batch_size": 16}})").shape.batch_size == 16);
}

TEST_CASE("decoder config: a real run_config.json is read") {
  const auto path = std::filesystem::path{MEMPROF_SOURCE_DIR} / "../shared/data/estimator/run_20260225_143607.run_config.json";
  if (!std::filesystem::exists(path)) SKIP("there is no " << path.string());
  std::ifstream file{path};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  CHECK(parse_decoder_config(text).shape == decoder_shape{256, 128, 128, 8, 2, 100, 3});
}

TEST_CASE("decoder config: Hugging Face's files describe the model, and leave batch and sequence to the caller") {
  const auto gpt2 = parse_decoder_config(R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 768,
      "n_head": 12, "n_layer": 12, "n_positions": 1024, "n_ctx": 1024, "n_inner": null, "vocab_size": 50257})",
                                         {.batch_size = 4, .seq_len = 512});
  REQUIRE(gpt2.model);
  CHECK(memprof::parameter_count(*gpt2.model, 512) == 124'439'808);
  CHECK(gpt2.longest_sequence == 1024);
  CHECK(gpt2.shape == decoder_shape{4, 512, 768, 12, 12, 50257, 0});

  const auto tiny = parse_decoder_config(R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
      "num_attention_heads": 32, "num_hidden_layers": 22, "num_key_value_heads": 4, "vocab_size": 32000,
      "max_position_embeddings": 2048, "tie_word_embeddings": false, "rope_scaling": null})");
  CHECK(*tiny.model == memprof::find_decoder("tinyllama-1.1b").model);
  CHECK(tiny.longest_sequence == 2048);

  const auto mixtral = parse_decoder_config(R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000, "head_dim": 128,
      "max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2})");
  CHECK(*mixtral.model == memprof::find_decoder("mixtral-8x7b").model);
}

TEST_CASE("decoder config: what cannot be is named with file and key") {
  CHECK_THAT(error_of(""), ContainsSubstring(start + "it is empty"));
  CHECK_THAT(error_of("[]"), Equals(start + "the document must be an object"));
  CHECK_THAT(error_of("{\"model\": 1}"), Equals(start + "/model must be an object"));
  CHECK_THAT(error_of(R"({"modle": {"layers": 3}})"),
             Equals(start + "/modle is unknown; known keys are run dataset tokenizer model train split logging"));
  CHECK_THAT(error_of(R"({"model": {"d_modle": 3}})"),
             Equals(start + "/model/d_modle is unknown; known keys are name d_model n_heads layers"));
  CHECK_THAT(error_of(R"({"model": {"layers": "two"}})"), Equals(start + "/model/layers must be a whole number, not \"two\""));
  CHECK_THAT(error_of(R"({"model": {"layers": 2.5}})"), ContainsSubstring("/model/layers must be a whole number, not 2.5"));
  CHECK_THAT(error_of(R"({"model": {"layers": 18446744073709551615}})"), ContainsSubstring("must be a whole number"));
  CHECK_THAT(error_of(R"({"model": {"layers": 2, "layers": 3}})"),
             Equals(start + "the key \"layers\" occurs twice in one object"));
  CHECK_THAT(error_of(R"({"model_type": "bert"})"),
             Equals(start + "/model_type is 'bert'; expected gpt2, llama, mistral or mixtral"));
  CHECK_THAT(error_of(R"({"model_type": "gpt2", "n_positions": 4})"), Equals(start + "/n_layer is missing"));
  CHECK_THAT(error_of("{\"a\": " + std::string(200, '[')), ContainsSubstring("nested deeper than 100 levels"));
  CHECK_THAT(error_of("{\"run\": \"" + std::string(2 << 20, 'x') + "\"}"), ContainsSubstring("more than such a file may have"));
  CHECK_THAT(error_of(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
      "num_hidden_layers": 1, "vocab_size": 8, "max_position_embeddings": 8, "head_dim": 32})"),
             ContainsSubstring("/head_dim 32 is not hidden_size / num_attention_heads"));
}

TEST_CASE("decoder config: Hugging Face's zeros are no defaults, and layers that are not modelled are refused") {
  const auto llama = [](const std::string& key, const std::string& value) {
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(R"({"model_type": "mixtral", "hidden_size": 64,
        "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 8,
        "max_position_embeddings": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": false})");
    document[key] = nlohmann::ordered_json::parse(value);
    return error_of(document.dump());
  };
  CHECK(llama("num_key_value_heads", "null") == "no error");
  for (const std::string key : {"hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size",
                                "num_hidden_layers", "max_position_embeddings", "num_local_experts", "num_experts_per_tok"}) {
    CHECK_THAT(llama(key, "0"), Equals(start + "/" + key + " is 0, but must be at least 1"));
    CHECK_THAT(llama(key, "-8"), Equals(start + "/" + key + " is -8, but must be at least 1"));
    CHECK_THAT(llama(key, "\"8\""), Equals(start + "/" + key + " must be a whole number, not \"8\""));
  }
  CHECK_THAT(llama("attention_bias", "true"), Equals(start + "/attention_bias is true, which is not modelled"));
  CHECK_THAT(llama("mlp_bias", "true"), Equals(start + "/mlp_bias is true, which is not modelled"));
  CHECK_THAT(error_of(R"({"model_type": "gpt2", "n_positions": 4, "n_layer": 1, "n_embd": 8, "n_head": 2, "n_inner": 0,
      "vocab_size": 8})"),
             Equals(start + "/n_inner is 0, but must be at least 1"));
  for (const std::string family : {"qwen2", "gemma", "falcon", "phi"}) {
    CHECK_THAT(error_of("{\"model_type\": \"" + family + "\"}"),
               Equals(start + "/model_type is '" + family + "'; expected gpt2, llama, mistral or mixtral"));
  }
}

}  // namespace memprof_tests::analysis_decoder_config
