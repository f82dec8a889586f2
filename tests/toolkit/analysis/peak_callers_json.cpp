#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_json.hpp>

#include <catch2/catch_test_macros.hpp>

#include <nlohmann/json.hpp>
#include <string>

namespace memprof_tests::analysis_peak_callers_json {

using memprof::peak_callers;
using nlohmann::ordered_json;

TEST_CASE("peak_callers: in JSON ten rows, the sum of the others and what has no stack add up to the peak") {
  peak_callers of;
  of.space = "cpu";
  of.bytes = 13'000;
  of.bytes_without = 1'000;
  of.missing_blocks = 3;
  for (int number = 1; number <= 12; ++number) of.callers.push_back({"f" + std::to_string(number), 1'000, 2, false, 0, 2});
  const ordered_json json = memprof::to_json(of);
  REQUIRE(json["rows"].size() == 10);
  CHECK(json["rows"][9] == ordered_json{{"caller", "f10"}, {"bytes", 1'000}, {"blocks", 2}, {"standard_error_bytes", nullptr}});
  CHECK(json["others"] == ordered_json{{"callers", 2}, {"bytes", 2'000}, {"blocks", 4}, {"standard_error_bytes", nullptr}});
  CHECK(json["peak_bytes"] == 13'000);
  CHECK(json["without_stack_bytes"] == 1'000);
  CHECK(json["missing_blocks"] == 3);
}

TEST_CASE("peak_callers: in JSON estimates have their standard errors, whose squares add up, and exact bytes have none") {
  peak_callers of;
  of.bytes = 20'000;
  of.sampled_blocks = 40;
  of.callers.push_back({"exact", 9'000, 1, false, 0, 1});
  for (int number = 1; number <= 11; ++number) of.callers.push_back({"f", 1'000.4, 2.6, true, 30, 4});
  const ordered_json json = memprof::to_json(of);
  CHECK(json["rows"][0]["standard_error_bytes"].is_null());
  CHECK(json["rows"][1] == ordered_json{{"caller", "f"}, {"bytes", 1'000}, {"blocks", 3}, {"standard_error_bytes", 30}});
  CHECK(json["others"] == ordered_json{{"callers", 2}, {"bytes", 2'001}, {"blocks", 5}, {"standard_error_bytes", 42}});
  CHECK(json["sampled_blocks"] == 40);
}

TEST_CASE("peak_callers: in JSON nothing is null, and too small a sample is a row of its own") {
  peak_callers of;
  CHECK(memprof::to_json(of).is_null());
  of.bytes = 500;
  CHECK(memprof::to_json(of).is_null());
  of.unsampled_bytes = 500;
  of.unsampled_blocks = 5;
  const ordered_json json = memprof::to_json(of);
  CHECK(json["rows"].empty());
  CHECK(json["unsampled_bytes"] == 500);
  CHECK(json["unsampled_blocks"] == 5);
}

}  // namespace memprof_tests::analysis_peak_callers_json
