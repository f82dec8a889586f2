#include <memprof/toolkit/analysis/waterfall_text.hpp>

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>

#include <toolkit/analysis/schema_keys.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests::report_waterfall_text {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using memprof::category;
using memprof::make_waterfall;

namespace {

memprof::compared_run column(std::string title, std::vector<memprof::held_bytes> held, std::string segment) {
  memprof::compared_run result;
  result.title = std::move(title);
  result.space = "cpu";
  result.segment = std::move(segment);
  result.operation = "forward/lm_head";
  result.has_categories = true;
  result.held = std::move(held);
  for (const memprof::held_bytes& each : result.held) {
    result.bytes += each.bytes;
    result.by_category.push_back({std::string{to_string(each.category)}, each.bytes, each.blocks});
  }
  return result;
}

/// 3000, 3500 and 3500 bytes: attention 1000 more in the second, mlp 500 less, and an operation that only the last one has in
/// place of another.
memprof::waterfall sample() {
  return make_waterfall({column("estimate",
                                {{{"forward", "block", "attention", "scores"}, category::activation, 1000, 1},
                                 {{"forward", "block", "mlp", "gelu"}, category::activation, 1500, 1},
                                 {{"batch"}, category::input, 500, 1}},
                                "BACKWARD_PASS"),
                         column("no dispatch",
                                {{{"forward", "block", "attention", "scores"}, category::activation, 2000, 1},
                                 {{"forward", "block", "mlp", "gelu"}, category::activation, 1000, 1},
                                 {{"batch"}, category::input, 500, 1}},
                                "FORWARD_PASS"),
                         column("measured",
                                {{{"forward", "block", "attention", "scores"}, category::activation, 2000, 1},
                                 {{"forward", "block", "mlp", "swiglu"}, category::activation, 1000, 1},
                                 {{"batch"}, category::input, 500, 1}},
                                "FORWARD_PASS")});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("waterfall text: the answer comes first, then every part and operation that differs, and their sum") {
  const std::string text = to_text(sample(), {.columns = 80});
  CHECK_THAT(text, StartsWith("Peak      estimate 2.93 KiB (3,000 B) in BACKWARD_PASS, operation\n"
                              "          forward/lm_head\n"
                              "          no dispatch 3.42 KiB (3,500 B) in FORWARD_PASS, operation\n"
                              "          forward/lm_head\n"
                              "          measured 3.42 KiB (3,500 B) in FORWARD_PASS, operation forward/lm_head\n"
                              "Change    no dispatch is 500 B more than estimate (+16.7 %): attention +1000 B,\n"
                              "          mlp -500 B\n"
                              "          measured equals no dispatch, part by part to the byte; 2 operations\n"
                              "          differ within them\n"
                              "Notes     The peaks are in different phases: each column has what was live at\n"
                              "          its own.\n"));
  CHECK_THAT(text, ContainsSubstring("\nattention "));
  CHECK_THAT(text, ContainsSubstring("\n1 equal part "));
  CHECK_THAT(text, ContainsSubstring("\nsum "));
  CHECK_THAT(text, !ContainsSubstring("batch"));
  CHECK_THAT(to_text(sample(), {.columns = 80}, true), ContainsSubstring("\n  batch "));
}

TEST_CASE("waterfall text: of thousands of operations the greatest changes are shown, and the others' sum") {
  // Parts of 1 to 3000 bytes that only the first column has, and one part of 3000 operations.
  std::vector<memprof::held_bytes> held;
  for (std::int64_t number = 1; number <= 3000; ++number) {
    std::string name(1, 'a');  // letters, as names that differ by a number are folded
    for (std::int64_t rest = number; rest != 0; rest /= 20) name += static_cast<char>('b' + rest % 20);
    held.push_back({{name}, category::activation, number, 1});
    held.push_back({{"w" + name}, category::gradient, number, 1});
  }
  held.push_back({{"same"}, category::activation, 7, 1});
  const memprof::waterfall all =
      make_waterfall({column("before", std::move(held), ""), column("after", {{{"same"}, category::activation, 7, 1}}, "")});
  const std::vector<std::string> lines = lines_of(to_text(all, {.columns = 80}));
  CHECK(lines.size() < 60);
  const auto starts = [&](const std::string& begin) {
    for (const std::string& line : lines) {
      if (line.starts_with(begin)) return line;
    }
    return std::string{};
  };
  // The sum of 1 to n is n (n + 1) / 2. Of the part "gradients", 10 operations are shown: 2990 with 4,471,545 B are left. Of the
  // parts, that one and 15 others: 2985 with 4,456,605 B.
  const auto says = [&](const std::string& begin, const std::string& bytes) {
    CHECK_THAT(starts(begin), ContainsSubstring(" " + bytes + " "));
    CHECK_THAT(starts(begin), ContainsSubstring(" -" + bytes));
  };
  says("  2,990 other operations", "4.26 MiB");
  says("2,985 other parts", "4.25 MiB");
  says("sum", "8.59 MiB");
  CHECK_THAT(starts("1 equal part"), ContainsSubstring(" 7 B"));
  CHECK(lines_of(to_text(all, {.columns = 80}, true)).size() > 9000);
}

TEST_CASE("waterfall text: an operation that a column lacks is a dash there") {
  for (const std::string& line : lines_of(to_text(sample(), {.columns = 100}))) {
    if (line.find("mlp/swiglu") == std::string::npos) continue;
    CHECK(line.find(" -  ") != std::string::npos);
    return;
  }
  FAIL("there is no line for mlp/swiglu");
}

TEST_CASE("waterfall text: no line is wider than the page, and names do not command the terminal") {
  memprof::waterfall wide = sample();
  wide = make_waterfall({column(std::string(90, 'x'), {{{std::string(300, 'n') + "\x1b[2J"}, category::other, 1, 1}}, "A"),
                         column("y", {{{std::string(300, 'n') + "b"}, category::other, 9'000'000'000'000, 1}}, "B\n")});
  for (const memprof::waterfall& of : {sample(), wide}) {
    for (const std::size_t columns : {60, 80, 100}) {
      for (const std::string& line : lines_of(to_text(of, {.columns = columns}, true))) {
        INFO(line);
        CHECK(memprof::detail::display_width(line) <= columns);
        CHECK(line.find('\x1b') == std::string::npos);
      }
    }
  }
}

TEST_CASE("waterfall JSON: rows sum to parts and parts to peaks, and the keys are those of the schema") {
  const nlohmann::ordered_json document = to_json(sample());
  CHECK(document["format"] == "memprof-waterfall");
  CHECK(document["changes"] == nlohmann::ordered_json({500, 0}));
  std::vector<std::int64_t> sums(3);
  for (const auto& part : document["parts"]) {
    for (const auto& operation : part["operations"]) {
      for (std::size_t index = 0; index < sums.size(); ++index) sums[index] += operation["bytes"][index].get<std::int64_t>();
    }
  }
  CHECK(sums == std::vector<std::int64_t>{3000, 3500, 3500});
  CHECK(document["columns"][0]["file"].is_null());

  const nlohmann::json schema = read_schema("waterfall.schema.json");
  const nlohmann::json& definitions = schema.at("definitions");
  check_keys(document, schema);
  check_keys(document["columns"][0], definitions.at("column"));
  check_keys(document["parts"][0], definitions.at("part"));
  check_keys(document["parts"][0]["operations"][0], definitions.at("operation"));
  check_keys(document["categories"][0], definitions.at("category"));
  CHECK(schema["properties"]["version"]["const"] == memprof::waterfall_json_version);
}

TEST_CASE("waterfall text: two runs whose processes differ by 100 MiB say so, whatever little was recorded") {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  const auto of_process = [](std::string title, std::int64_t bytes, std::int64_t resident, std::int64_t heap) {
    memprof::compared_run made = column(std::move(title), {{{"index"}, category::other, bytes, 1}}, "BUILD");
    memprof::process_memory reading;
    reading.resident_bytes = resident;
    reading.anonymous_bytes = resident - 3 * mib;
    reading.recorded_bytes = bytes;
    reading.unrecorded_heap_bytes = heap;
    made.process = memprof::detail::account_of(reading);
    return made;
  };
  const auto small = of_process("small", 1000, 123 * mib, 110 * mib);
  const auto large = of_process("large", 1224, 232 * mib, 218 * mib);
  const memprof::waterfall differ = make_waterfall({small, large});
  const std::string text = to_text(differ, {.columns = 200});
  CHECK_THAT(text, ContainsSubstring("large is 224 B more than small"));
  CHECK_THAT(text, ContainsSubstring("large 232 MiB resident, 109 MiB more than small: recorded +224 B, heap not recorded +108 "
                                     "MiB, others +1.00 MiB"));
  CHECK(to_json(differ)["columns"][1]["resident_bytes"] == 232 * mib);
  CHECK(to_json(differ)["columns"][1]["unrecorded_heap_bytes"] == 218 * mib);
  CHECK(to_json(sample())["columns"][1]["resident_bytes"].is_null());
  // Within 5 % of each other, and where one of them is unknown.
  CHECK_THAT(to_text(make_waterfall({small, of_process("like", 1224, 124 * mib, 111 * mib)})), !ContainsSubstring("resident"));
  CHECK_THAT(to_text(make_waterfall({small, column("unknown", {}, "BUILD")})), !ContainsSubstring("resident"));
}

TEST_CASE("waterfall text: caveats of the recordings are notes, under the title of their column") {
  memprof::compared_run first = column("estimate", {{{"index"}, category::other, 1000, 1}}, "BUILD");
  memprof::compared_run second = column("measured", {{{"index"}, category::other, 1100, 1}}, "BUILD");
  first.remarks = {"both clocks stood still"};
  second.remarks = {"both clocks stood still", "12 bytes were not recorded"};
  const memprof::waterfall of = make_waterfall({first, second});
  CHECK_THAT(to_text(of, {.columns = 200}),
             ContainsSubstring("both clocks stood still\n") && ContainsSubstring("measured: 12 bytes were not recorded\n"));
  CHECK(to_json(of)["caveats"] == std::vector<std::string>{"both clocks stood still", "measured: 12 bytes were not recorded"});
}

TEST_CASE("waterfall text: columns say how many steps they rest on") {
  memprof::waterfall shown = sample();
  CHECK_THAT(memprof::to_text(shown), !ContainsSubstring("Steps"));
  shown.columns[0].training_steps = 1;
  shown.columns[1].script = memprof::script_run{2, 2, 0};
  shown.columns[2].script = memprof::script_run{1, 2, 1};
  for (std::size_t index = 1; index < 3; ++index)
    shown.columns[index].training_steps = shown.columns[index].script->optimizer_steps;
  CHECK_THAT(memprof::to_text(shown),
             ContainsSubstring("Steps     estimate: one step\n"
                               "          no dispatch: the first 2 optimizer steps of the script\n"
                               "          measured: 1 optimizer step, then the script ended: 2 were asked for\n"));
  CHECK_THAT(memprof::to_text(shown), ContainsSubstring("the script made different numbers of optimizer steps in its runs"));
  const nlohmann::ordered_json columns = memprof::to_json(shown).at("columns");
  CHECK(columns.at(0).at("optimizer_steps") == 1);
  CHECK(columns.at(0).at("script_ended").is_null());
  CHECK(columns.at(2).at("optimizer_steps") == 1);
  CHECK(columns.at(2).at("script_ended") == true);
}

}  // namespace memprof_tests::report_waterfall_text
