#include <memprof/toolkit/analysis/short_json.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof_tests::analysis_short_json {

TEST_CASE("short answer: one that is small stays as it is") {
  const nlohmann::ordered_json small{{"verdict", "none"}, {"caveats", {"a"}}, {"rows", {1, 2, 3}}};
  CHECK(memprof::short_answer(small) == small);
}

TEST_CASE("short answer: lists are cut until it fits, which is said where they were; caveats stay") {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int row = 0; row < 100; ++row)
    rows.push_back({{"number", row}, {"parts", nlohmann::ordered_json::array({1, 2, 3, 4, 5})}});
  nlohmann::ordered_json whole{{"verdict", "grows"}, {"caveats", nlohmann::ordered_json::array()}, {"rows", rows}};
  for (int caveat = 0; caveat < 20; ++caveat) whole["caveats"].push_back("not exact");
  const nlohmann::ordered_json cut = memprof::short_answer(whole, 1500);
  CHECK(cut.dump().size() <= 1500);
  CHECK(cut["verdict"] == "grows");
  CHECK(cut["caveats"].size() == 20);
  const std::size_t kept = cut["rows"].size();
  REQUIRE(kept > 0);
  REQUIRE(kept < 100);
  CHECK(cut["left_out"] == nlohmann::ordered_json{{"rows", 100 - kept}});
  for (std::size_t row = 0; row < kept; ++row) CHECK(cut["rows"][row]["number"] == row);
  // Of the shortest, each row says it for its own list.
  const nlohmann::ordered_json shortest = memprof::short_answer(whole, 1);
  REQUIRE(shortest["rows"].size() == 1);
  CHECK(shortest["rows"][0]["parts"] == nlohmann::ordered_json::array({1}));
  CHECK(shortest["rows"][0]["left_out"] == nlohmann::ordered_json{{"parts", 4}});
}

TEST_CASE("short answer: thousands of caveats are cut last") {
  nlohmann::ordered_json whole{{"verdict", "none"}, {"caveats", nlohmann::ordered_json::array()}, {"rows", {1, 2, 3}}};
  for (int file = 0; file < 5'000; ++file) whole["caveats"].push_back("file " + std::to_string(file) + " was cut off");
  const nlohmann::ordered_json cut = memprof::short_answer(whole);
  CHECK(cut.dump().size() <= memprof::most_answer_bytes);
  CHECK(cut["caveats"].size() == 32);
  CHECK(cut["caveats"][31] == "file 31 was cut off");
  CHECK(cut["left_out"] == nlohmann::ordered_json{{"caveats", 5'000 - 32}, {"rows", 2}});
}

TEST_CASE("short answer: further caveats come behind those of the answer, and empty ones are none") {
  const nlohmann::ordered_json answer{{"caveats", {"first"}}};
  CHECK(memprof::with_caveats(answer, {"", "second"})["caveats"] == nlohmann::ordered_json::array({"first", "second"}));
}

}  // namespace memprof_tests::analysis_short_json
