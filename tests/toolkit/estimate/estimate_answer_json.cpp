#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/estimate_answer_json.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/forward_estimate.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <memprof/trace/device_presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof_tests::estimate_answer {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("estimate answer: a CUDA device has its parts, which add up, with the keys of the schema") {
  const memprof::decoder_model model{.layers = 1, .d_model = 64, .heads = 1, .vocabulary = 64};
  const memprof::training_setup setup{.seq_len = 32, .device = memprof::device_preset("gpu-24gb")};
  const memprof::training_estimate step = memprof::estimate_training_step(model, setup);
  const memprof::predicted_fit room = memprof::predict_step(model, setup);
  const nlohmann::ordered_json answer = memprof::estimate_answer_json(memprof::estimate_forward(model, 1, 32), &step, &room);

  const nlohmann::json schema = memprof_tests::read_schema("estimate.schema.json");
  const nlohmann::ordered_json& device = answer.at("step").at("device");
  memprof_tests::check_keys(answer.at("step"), schema.at("definitions").at("step"));
  memprof_tests::check_keys(device, schema.at("definitions").at("device"));
  std::int64_t sum = 0;
  for (const nlohmann::ordered_json& part : device.at("parts")) {
    memprof_tests::check_keys(part, schema.at("definitions").at("part"));
    sum += part.at("bytes").get<std::int64_t>();
  }
  CHECK(sum == device.at("total_bytes"));
  CHECK(sum == device.at("reserved_bytes").get<std::int64_t>() + device.at("parts").at(0).at("bytes").get<std::int64_t>());
  CHECK(device.at("fits") == true);
  CHECK_THAT(answer.at("verdict").get<std::string>(), ContainsSubstring(" with all parts fit 23.6 GiB"));
  CHECK_THAT(answer.at("caveats").dump(), ContainsSubstring("CUDA context 473 MiB to 504 MiB"));
  CHECK_THAT(answer.at("caveats").dump(), !ContainsSubstring("leaves out the device's context"));

  const nlohmann::ordered_json without = memprof::estimate_answer_json(memprof::estimate_forward(model, 1, 32), &step);
  CHECK(without.at("step").at("device").is_null());
  CHECK_THAT(without.at("caveats").dump(), ContainsSubstring("the device's context and its allocator"));
}

}  // namespace memprof_tests::estimate_answer
