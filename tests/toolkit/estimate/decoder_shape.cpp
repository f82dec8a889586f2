#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_json.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace memprof_tests::analysis_estimate_decoder_shape {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::decoder_shape;
using memprof::estimate_bucket;
using memprof::estimate_shape;
using memprof::shape_estimate;

namespace {

/// What the original printed and wrote for a shape; empty where the data is not there.
std::string original(const std::string& name) {
  std::ifstream file{std::filesystem::path{MEMPROF_SOURCE_DIR} / "../shared/data/estimator" / name};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Whether two documents have the same keys and values, numbers to twelve decimals.
bool agree(const nlohmann::ordered_json& left, const nlohmann::ordered_json& right) {
  if (left.is_number() && right.is_number()) {
    return left.is_number_float() == right.is_number_float() && std::abs(left.get<double>() - right.get<double>()) <= 1e-12;
  }
  if (left.type() != right.type() || left.size() != right.size()) return false;
  if (!left.is_structured()) return left == right;
  auto other = right.begin();
  for (auto one = left.begin(); one != left.end(); ++one, ++other) {
    if (left.is_object() && one.key() != other.key()) return false;
    if (!agree(*one, *other)) return false;
  }
  return true;
}

constexpr decoder_shape dry_run{.batch_size = 2, .seq_len = 32, .d_model = 64, .n_heads = 8, .layers = 1, .base_vocab_size = 256};

}  // namespace

TEST_CASE("estimate: the closed forms, by hand") {
  // B = 2, T = 3, D = 4, H = 2, L = 5, V = 7 + 0.
  const shape_estimate estimate = estimate_shape({2, 3, 4, 2, 5, 7, 0});
  const auto bytes = [&](estimate_bucket bucket) { return estimate.bucket(bucket).fp32_bytes; };
  CHECK(bytes(estimate_bucket::input_projects) == 4 * 5 * 2 * 3 * 12);
  CHECK(bytes(estimate_bucket::per_layer_attention) == 4 * 5 * 2 * 2 * 2 * 3 * 3);
  CHECK(bytes(estimate_bucket::per_layer_mlp) == 4 * 5 * (2 * 3 * 16 + 2 * 3 * 4));
  CHECK(bytes(estimate_bucket::output_project) == 4 * 2 * 3 * 7);
  CHECK(bytes(estimate_bucket::others) == 5 * (2 * 3 * 3 + 3 * 3) + 2 * 3);
  CHECK(estimate.bucket(estimate_bucket::others).bf16_bytes == bytes(estimate_bucket::others));
  CHECK(2 * estimate.bucket(estimate_bucket::per_layer_mlp).bf16_bytes == bytes(estimate_bucket::per_layer_mlp));
  CHECK(estimate.bucket(estimate_bucket::input_projects).parameters == 5 * (4 * 12 + 12));
  CHECK(estimate.bucket(estimate_bucket::per_layer_attention).parameters == 5 * (4 * 4 + 4));
  CHECK(estimate.bucket(estimate_bucket::per_layer_mlp).parameters == 5 * (4 * 16 + 16 + 16 * 4 + 4));
  CHECK(estimate.bucket(estimate_bucket::output_project).parameters == 4 * 7 + 7);
  CHECK(estimate.bucket(estimate_bucket::others).parameters == 7 * 4 + 5 * 4 * 4);
}

TEST_CASE("estimate: the default has the published figures") {
  const shape_estimate estimate = estimate_shape({});
  CHECK(estimate.bucket(estimate_bucket::per_layer_attention).fp32_bytes == std::int64_t{48} << 30);
  CHECK(estimate.bucket(estimate_bucket::per_layer_mlp).fp32_bytes == std::int64_t{45} << 28);
  CHECK(estimate.bucket(estimate_bucket::input_projects).parameters == 21'261'312);
  CHECK(estimate.bucket(estimate_bucket::per_layer_attention).parameters == 7'087'104);
  CHECK(estimate.bucket(estimate_bucket::per_layer_mlp).parameters == 56'669'184);
  CHECK(estimate.bucket(estimate_bucket::output_project).parameters == 25'594'627);
  CHECK(estimate.bucket(estimate_bucket::others).parameters == 25'598'208);
}

TEST_CASE("estimate: text and JSON are the original's to the last digit") {
  const auto check = [](const std::string& name, const decoder_shape& shape, std::size_t top_k) {
    const std::string text = original(name + ".stdout.txt");
    if (text.empty()) SKIP("there is no ../shared/data/estimator");
    INFO(name);
    const shape_estimate estimate = estimate_shape(shape);
    CHECK(text.starts_with(memprof::to_text(estimate, top_k)));
    const auto document = nlohmann::ordered_json::parse(original(name + ".summary.json"));
    CHECK(agree(memprof::to_json(estimate), document));
  };
  check("default_top12", {}, 12);
  check("doc_example_b48", {.batch_size = 48}, 20);
  check("cpu_dry_run", dry_run, 12);
}

TEST_CASE("estimate: only the largest operations are shown, all are in JSON") {
  const shape_estimate estimate = estimate_shape(dry_run);
  const std::string text = memprof::to_text(estimate, 2);
  CHECK_THAT(text, ContainsSubstring("Top 2 contributors"));
  CHECK_THAT(text, ContainsSubstring("softmax.in(scores)"));
  CHECK_THAT(text, !ContainsSubstring("softmax.out(probs)"));
  CHECK(memprof::to_json(estimate)["top_ops"]["fp32"].size() == 9);
  CHECK_THAT(memprof::to_text(estimate, 0), ContainsSubstring("Top 0 contributors"));
}

TEST_CASE("estimate: sums of operations are the buckets, whatever the shape") {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    const auto size = [&](unsigned most) { return static_cast<std::int64_t>(random() % most + 1); };
    const std::int64_t heads = size(16);
    const shape_estimate estimate =
        estimate_shape({size(64), size(2048), heads * size(128), heads, size(48), size(50000), size(5) - 1});
    for (std::size_t bucket = 0; bucket < estimate.buckets.size(); ++bucket) {
      memprof::estimated_bytes sum;
      for (const memprof::estimated_operation& operation : estimate.operations) {
        if (static_cast<std::size_t>(operation.bucket) != bucket) continue;
        sum.fp32_bytes += operation.total.fp32_bytes;
        sum.bf16_bytes += operation.total.bf16_bytes;
      }
      CHECK(sum.fp32_bytes == estimate.buckets[bucket].fp32_bytes);
      CHECK(sum.bf16_bytes == estimate.buckets[bucket].bf16_bytes);
    }
  }
}

TEST_CASE("estimate: sizes that cannot be are refused by name") {
  const auto refused = [](const decoder_shape& shape, const char* text) {
    CHECK_THROWS_MATCHES((void)estimate_shape(shape), memprof::error, MessageMatches(ContainsSubstring(text)));
  };
  refused({.batch_size = 0}, "batch_size is 0, but must be at least 1");
  refused({.seq_len = -1}, "seq_len is -1, but must be at least 1");
  refused({.d_model = 0}, "d_model is 0");
  refused({.n_heads = 0}, "n_heads is 0");
  refused({.layers = 0}, "layers is 0");
  refused({.base_vocab_size = 0}, "base_vocab_size is 0");
  refused({.num_special_tokens = -1}, "num_special_tokens is -1, but must be at least 0");
  refused({.n_heads = 7}, "n_heads 7 does not divide d_model 768");
  refused({.batch_size = INT64_MAX / 4, .seq_len = 8}, "does not fit 63 bits");
  refused({.base_vocab_size = INT64_MAX, .num_special_tokens = 1}, "does not fit 63 bits");
  refused({.d_model = INT64_MAX, .n_heads = 1}, "does not fit 63 bits");
}

}  // namespace memprof_tests::analysis_estimate_decoder_shape
