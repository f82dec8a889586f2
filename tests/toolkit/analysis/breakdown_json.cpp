#include <memprof/toolkit/analysis/breakdown_json.hpp>

#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <toolkit/analysis/analyzed.hpp>
#include <toolkit/analysis/schema_keys.hpp>
#include <toolkit/format/tenstorrent/tracker_text.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof_tests::report_breakdown_json {

using namespace memprof_tests;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

nlohmann::ordered_json document_of(const std::string& log, const memprof::breakdown_options& options = {}) {
  return memprof::to_json(analyzed_log(log, options));
}

}  // namespace

TEST_CASE(
    "breakdown JSON: its verdict is the greatest peak, its parts and whether it fits, and its keys are those of the schema") {
  const auto document = document_of("tinyllama\n" + memory_efficient_text() + "other\n" + memory_efficient_text(),
                                    {.device_memory = std::int64_t{8} << 30});
  const std::string verdict = document["verdict"];
  CHECK_THAT(verdict, StartsWith("tinyllama: peak 8.08 GiB (") && ContainsSubstring(" of dram, Activations 193 MiB") &&
                          ContainsSubstring("; does not fit: 86.6 MiB over 8.00 GiB") &&
                          EndsWith(" (the greatest of 2 summaries)"));
  CHECK_THAT(std::string{document_of("tinyllama\n" + memory_efficient_text())["verdict"]},
             ContainsSubstring("; fits 12.0 GiB with 3.92 GiB left"));
  const nlohmann::json schema = read_schema("analysis.schema.json");
  check_keys(document, schema);
  const auto& summary = document["summaries"][0];
  const nlohmann::json& definitions = schema["definitions"];
  check_keys(summary, definitions["summary"]);
  check_keys(summary["model"], definitions["size"]);
  check_keys(summary["activations"], definitions["measured"]);
  check_keys(summary["peak_parts"], definitions["peak_parts"]);
  check_keys(summary["segments"][0], definitions["segment"]);
  CHECK(schema["properties"]["version"]["const"] == memprof::breakdown_json_version);
}

TEST_CASE("breakdown JSON: caveats are the notes of all summaries, each once") {
  memprof::profile profile;
  profile.complete = true;
  profile.spaces.emplace_back().name = "cpu";
  profile.spaces.emplace_back().name = "dram";
  const auto all = [&] { return memprof::caveats_of({analyzed(profile, 0), analyzed(profile, 1)}); };
  const std::vector<std::string> before = all();
  profile.provenance.remarks = {"sizes are multiples of 512 bytes"};
  CHECK(all().size() == before.size() + 1);
  CHECK(all().front() == "sizes are multiples of 512 bytes");
}

TEST_CASE("breakdown JSON: it has the numbers of the tables in bytes") {
  const auto document = document_of("Number of parameters: 969369600\ntinyllama\n" + memory_efficient_text(),
                                    {.device_memory = std::int64_t{12} << 30});
  CHECK(document["format"] == "memprof-analysis");
  CHECK(document["version"] == 2);
  REQUIRE(document["summaries"].size() == 1);
  const auto& summary = document["summaries"][0];
  CHECK(summary["file"] == "run.log");
  CHECK(summary["line"] == 3);
  CHECK(summary["section"] == "tinyllama");
  CHECK(summary["parameters"] == 969'369'600);
  CHECK(summary["rounding"] == 10486);
  CHECK(summary["model"]["actual"] == hundredths(186325));
  CHECK(summary["model"]["expected"] == 1'938'739'200);
  CHECK(summary["model"]["difference_percent"].get<double>() == Catch::Approx(0.7747).epsilon(0.001));
  CHECK(summary["model"]["actual_from"] == "phases");
  CHECK(summary["activations"]["actual"] == hundredths(19295));
  CHECK(summary["gradients"]["actual"] == hundredths(742804) - hundredths(557201));
  CHECK(summary["cumulative_peak"] == hundredths(827865));
  CHECK(summary["device"] == "");
  CHECK(summary["device_memory"] == 12'884'901'888);
  CHECK(summary["device_memory_source"] == "option");
  CHECK(summary["fits"] == true);
  CHECK(summary["usage_percent"].get<double>() == Catch::Approx(100 * 8278.65 / 12288));
  CHECK(summary["peak_segment"] == 3);
  CHECK(summary["peak_parts"]["live_at_peak"] == false);
  CHECK(summary["peak_parts"]["gradients"] == hundredths(251369));
  CHECK(summary["peak_parts"]["excess"] == 0);
  REQUIRE(summary["segments"].size() == 4);
  CHECK(summary["segments"][3]["segment"] == "BACKWARD_PASS");
  CHECK(summary["segments"][3]["cumulative_current"] == hundredths(742804));
  CHECK(summary["remarks"] == nlohmann::ordered_json::array());
}

TEST_CASE("breakdown JSON: what is not known is null") {
  const auto document = document_of(header_text + totals_text("1.00", "1.00"));
  const auto& summary = document["summaries"][0];
  CHECK(summary["parameters"].is_null());
  CHECK(summary["model"]["actual"].is_null());
  CHECK(summary["model"]["difference_percent"].is_null());
  CHECK(summary["model"]["actual_from"].is_null());
  CHECK(summary["activations"]["actual"].is_null());
  CHECK(summary["rank"].is_null());
  CHECK(summary["device_memory"] == 12'884'901'888);
  CHECK(summary["device_memory_source"] == "default");
  CHECK(summary["peak_segment"].is_null());
  CHECK(summary["remarks"].size() == 2);
}

TEST_CASE("breakdown JSON: the spaces that it is not about are named") {
  memprof::profile profile;
  profile.exact = true;
  profile.spaces.resize(2);
  profile.spaces[0].name = "cpu";
  profile.spaces[0].cumulative_peak = 5;
  profile.spaces[1].name = "cuda:0";
  const auto document = memprof::to_json({analyzed(profile, 1)});
  CHECK(document["summaries"][0]["space"] == "cuda:0");
  CHECK(document["summaries"][0]["other_spaces"].dump() == R"([{"name":"cpu","cumulative_peak":5,"cumulative_current":0}])");
}

}  // namespace memprof_tests::report_breakdown_json
