#include <memprof/toolkit/analysis/baseline.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/baseline_json.hpp>

#include <buffer.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::analysis_baseline {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::baseline_difference;
using memprof::baseline_of;
using memprof::baseline_operation;
using memprof::baseline_space;
using memprof::growth_since;
using memprof::run_baseline;

namespace {

/// A run in which each operation holds its bytes until the end.
run_baseline run_with(const std::vector<std::pair<std::string, std::size_t>>& operations) {
  auto capture = memprof::begin_capture();
  std::deque<buffer> kept;
  for (const auto& [operation, bytes] : operations) kept.push_back(allocated_in(operation, bytes));
  capture.end();
  return baseline_of(capture.profile());
}

std::vector<std::pair<std::string, std::size_t>> layers(std::size_t count, std::size_t bytes) {
  std::vector<std::pair<std::string, std::size_t>> made;
  for (std::size_t layer = 0; layer < count; ++layer) made.emplace_back("h." + std::to_string(layer), bytes);
  return made;
}

std::int64_t held_by(const baseline_space& space) {
  std::int64_t sum = space.other_bytes;
  for (const baseline_operation& row : space.operations) sum += row.held_bytes * row.operations;
  return sum;
}

std::int64_t sum_of(const std::vector<baseline_difference>& rows) {
  std::int64_t sum = 0;
  for (const baseline_difference& row : rows) sum += row.change();
  return sum;
}

}  // namespace

TEST_CASE("baseline: it has the peaks of a run's spaces, segments and operations") {
  auto capture = memprof::begin_capture();
  const buffer weights = allocated_in("model", 1000);
  memprof::snapshot("MODEL");
  { const buffer activations = allocated_in("forward", 500); }
  memprof::snapshot("FORWARD");
  capture.end();
  const run_baseline of = baseline_of(capture.profile());
  REQUIRE(of.spaces.size() == 1);
  const baseline_space& cpu = of.spaces.front();
  CHECK(of.exact);
  CHECK(cpu.space == "cpu");
  CHECK(cpu.peak_bytes == 1500);
  CHECK(cpu.end_bytes == 1000);
  CHECK(cpu.segment == "FORWARD");
  CHECK(cpu.operation == "forward");
  REQUIRE(cpu.segments.size() == 3);
  CHECK(cpu.segments[0].segment == "FORWARD");
  CHECK(cpu.segments[0].peak_bytes == 1500);
  CHECK(cpu.segments[1].peak_bytes == 1000);
  REQUIRE(cpu.operations.size() == 2);
  CHECK(cpu.operations[0].operation == "model");
  CHECK(cpu.operations[0].held_bytes == 1000);
  CHECK(cpu.operations[1].peak_bytes == 500);
  CHECK(held_by(cpu) == 1500);
}

TEST_CASE("baseline: equal layers become one row, and what is cut is summed up") {
  auto operations = layers(100, 64);
  operations.emplace_back("head", 5000);
  operations.emplace_back("small", 3);
  const run_baseline all = run_with(operations);
  CHECK(all.spaces[0].operations.size() == 102);
  const run_baseline of = reduced(all, 2);
  const baseline_space& cpu = of.spaces[0];
  REQUIRE(cpu.operations.size() == 2);
  CHECK(cpu.operations[0].operation == "h.*");
  CHECK(cpu.operations[0].operations == 100);
  CHECK(cpu.operations[0].held_bytes == 64);
  CHECK(cpu.operations[1].operation == "head");
  CHECK(cpu.other_operations == 1);
  CHECK(cpu.other_bytes == 3);
  CHECK(held_by(cpu) == 100 * 64 + 5000 + 3);
}

TEST_CASE("baseline: the one layer that grew is named, although the baseline has all layers in one row") {
  const run_baseline before = reduced(run_with(layers(12, 100)));
  auto changed = layers(12, 100);
  changed[11].second = 350;
  const run_baseline after = run_with(changed);
  const std::vector<baseline_difference> rows = growth_since(before.spaces[0], after.spaces[0]);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].operation == "h.11");
  CHECK(rows[0].before == 100);
  CHECK(rows[0].after == 350);
}

TEST_CASE("baseline: layers that changed alike are one row; a further layer is new") {
  const run_baseline before = reduced(run_with(layers(12, 100)));
  const std::vector<baseline_difference> rows = growth_since(before.spaces[0], run_with(layers(12, 130)).spaces[0]);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].operation == "h.*");
  CHECK(rows[0].operations == 12);
  CHECK(rows[0].change() == 12 * 30);
  const std::vector<baseline_difference> deeper = growth_since(before.spaces[0], run_with(layers(13, 100)).spaces[0]);
  REQUIRE(deeper.size() == 1);
  CHECK(deeper[0].before == 0);
  CHECK(deeper[0].after == 100);
  const std::vector<baseline_difference> flatter = growth_since(before.spaces[0], run_with(layers(10, 100)).spaces[0]);
  CHECK(sum_of(flatter) == -200);
}

TEST_CASE("baseline: the changes of the owners sum to the change of the peak, whatever the baseline left out") {
  auto operations = layers(5, 1000);
  operations.emplace_back("gone", 700);
  operations.emplace_back("small", 10);
  operations.emplace_back("smaller", 9);
  const run_baseline all = run_with(operations);
  auto changed = layers(6, 900);
  changed.emplace_back("small", 12);
  changed.emplace_back("smaller", 9);
  changed.emplace_back("new", 600);
  const run_baseline after = run_with(changed);
  const std::int64_t change = (6 * 900 + 12 + 9 + 600) - (5 * 1000 + 700 + 10 + 9);
  for (const std::size_t most : {1, 2, 3, 64}) {
    INFO(most);
    const std::vector<baseline_difference> rows = growth_since(reduced(all, most).spaces[0], after.spaces[0]);
    CHECK(sum_of(rows) == change);
    const std::vector<baseline_difference> whole = growth_since(all.spaces[0], after.spaces[0]);
    CHECK(sum_of(whole) == change);
  }
}

TEST_CASE("baseline: the file reads back as it was, names its newer version, and refuses what does not add up") {
  auto operations = layers(40, 64);
  operations.emplace_back("a/\"b\"\n", 5000);
  const run_baseline of = reduced(run_with(operations));
  const nlohmann::ordered_json document = to_json(of);
  check_keys(document, read_schema("baseline.schema.json"));
  check_keys(document.at("spaces").at(0), read_schema("baseline.schema.json").at("definitions").at("space"));
  const std::string text = memprof::detail::dump(document);
  CHECK(text.size() < 4096);
  const run_baseline read = memprof::parse_baseline(text, "baseline.json");
  CHECK(to_json(read) == document);

  nlohmann::ordered_json newer = document;
  newer["version"] = 99;
  CHECK_THROWS_MATCHES(memprof::parse_baseline(newer.dump(), "baseline.json"), memprof::error,
                       MessageMatches(ContainsSubstring("'baseline.json'") && ContainsSubstring("version is 99") &&
                                      ContainsSubstring("newer memprof")));
  nlohmann::ordered_json wrong = document;
  wrong["spaces"][0]["peak_bytes"] = 1;
  CHECK_THROWS_MATCHES(memprof::parse_baseline(wrong.dump(), "baseline.json"), memprof::error,
                       MessageMatches(ContainsSubstring("/spaces/0") && ContainsSubstring("do not sum to its peak_bytes, 1")));
  nlohmann::ordered_json endless = document;
  endless["spaces"][0]["operations"][0]["operations"] = std::int64_t{1} << 62;
  CHECK_THROWS_AS(memprof::parse_baseline(endless.dump(), "baseline.json"), memprof::error);
  nlohmann::ordered_json greedy = document;
  greedy["spaces"][0]["segments"] = {{{"segment", "STEP"},
                                      {"peak_bytes", 10},
                                      {"owners", {{{"operation", "a"}, {"operations", 2}, {"held_bytes", 4}}}},
                                      {"other_bytes", 1}}};
  CHECK_THROWS_MATCHES(memprof::parse_baseline(greedy.dump(), "baseline.json"), memprof::error,
                       MessageMatches(ContainsSubstring("owners of segment 'STEP' do not sum to its peak_bytes, 10")));
  greedy["spaces"][0]["segments"][0]["other_bytes"] = 2;
  CHECK(memprof::parse_baseline(greedy.dump(), "baseline.json").spaces[0].segments[0].owners[0].held_bytes == 4);
  greedy["spaces"][0]["segments"][0] = {{"segment", "STEP"}, {"peak_bytes", 10}};  // as written before they had owners
  CHECK(memprof::parse_baseline(greedy.dump(), "baseline.json").spaces[0].segments[0].owners.empty());
  CHECK_THROWS_AS(memprof::parse_baseline("{}", "baseline.json"), memprof::error);
  CHECK_THROWS_AS(memprof::parse_baseline("", "baseline.json"), memprof::error);
}

}  // namespace memprof_tests::analysis_baseline
