#include <memprof/toolkit/analysis/comparison.hpp>

#include <memprof/memprof.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/page/comparison_html.hpp>
#include <memprof/trace/trace.hpp>

#include <buffer.hpp>
#include <scratch_folder.hpp>
#include <toolkit/analysis/schema_keys.hpp>
#include <toolkit/page/page_reader.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_comparison {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::compare_runs;
using memprof::compared_moment;
using memprof::compared_run;
using memprof::comparison;
using memprof::comparison_row;
using memprof::owner_change;

namespace {

/// A finished capture with its events.
struct recorded {
  memprof::profile profile;
  memprof::trace events;

  [[nodiscard]] compared_run run(const char* title, compared_moment moment = compared_moment::peak) const {
    return compared_run_of(title, profile, profile.space("cpu"), memprof::stack_table_of(events, true, true), moment);
  }
  [[nodiscard]] compared_run run_of_profile(const char* title) const {
    return compared_run_of(title, profile, profile.space("cpu"), memprof::stack_table_of(profile), compared_moment::peak);
  }
  [[nodiscard]] compared_run run_of_segment(const char* title, std::string_view name) const {
    return compared_run_of(title, profile, profile.space("cpu"), memprof::stack_table_of(profile), name);
  }
};

template <class Program>
recorded record(Program&& program) {
  recorded result;
  auto capture = memprof::begin_capture({.trace = &result.events});
  program();
  capture.end();
  result.profile = capture.profile();
  return result;
}

comparison compared(const recorded& before, const recorded& after, compared_moment moment = compared_moment::peak) {
  return compare_runs({before.run("before", moment)}, {after.run("after", moment)});
}

const comparison_row& row_of(const std::vector<comparison_row>& rows, std::string_view owner) {
  for (const comparison_row& row : rows) {
    if (row.owner == owner) return row;
  }
  FAIL("no row of " << owner);
  return rows.front();
}

/// What must hold of every comparison: each table adds up to both sides.
void check_sums(const comparison& of) {
  for (const auto* const rows : {&of.operations, &of.categories, &of.sizes}) {
    if (rows == &of.sizes && rows->empty()) continue;
    std::int64_t before = 0;
    std::int64_t after = 0;
    std::int64_t change = 0;
    for (const comparison_row& row : *rows) {
      before += row.before;
      after += row.after;
      change += row.change();
    }
    CHECK(before == of.before.bytes);
    CHECK(after == of.after.bytes);
    CHECK(change == of.change());
  }
}

}  // namespace

TEST_CASE("comparison: what came, went, grew, shrank and stayed is a row each, and the rows add up") {
  const auto program = [](std::size_t grown, std::size_t shrunk, const char* other) {
    return record([&] {
      const buffer kept = allocated_in("stays", 100);
      const buffer first = allocated_in("grows", grown);
      const buffer second = allocated_in("shrinks", shrunk);
      const buffer third = allocated_in(other, 7);
    });
  };
  const comparison of = compared(program(1000, 500, "old"), program(1500, 450, "young"));
  check_sums(of);
  CHECK(of.change() == 450);
  CHECK(row_of(of.operations, "stays").what == owner_change::equal);
  CHECK(row_of(of.operations, "grows").what == owner_change::more);
  CHECK(row_of(of.operations, "grows").change() == 500);
  CHECK(row_of(of.operations, "shrinks").what == owner_change::less);
  CHECK(row_of(of.operations, "old").what == owner_change::went);
  CHECK(row_of(of.operations, "young").what == owner_change::came);
  CHECK(of.operations.front().owner == "grows");
  CHECK(row_of(of.operations, "young").blocks_after == 1);
  CHECK_FALSE(of.is_equal());
}

TEST_CASE("comparison: what is allocated in both runs but is live at one peak only has moved") {
  // The peak is in A before, and in B after.
  const auto program = [](std::size_t in_a, std::size_t in_b) {
    return record([&] {
      { const buffer first = allocated_in("of a", in_a); }
      memprof::snapshot("A");
      { const buffer second = allocated_in("of b", in_b); }
      memprof::snapshot("B");
    });
  };
  const comparison of = compared(program(1000, 800), program(1000, 1200));
  check_sums(of);
  CHECK(of.change() == 200);
  CHECK(row_of(of.operations, "of a").what == owner_change::moved_out);
  CHECK(row_of(of.operations, "of b").what == owner_change::moved_in);
  CHECK_FALSE(of.is_same_moment());
  const std::string text = to_text(of, {.columns = 80});
  CHECK_THAT(text, ContainsSubstring("another peak: before, B reached 800 B, the second highest of 3"));
  CHECK_THAT(text, ContainsSubstring("A reached 1000 B, the second highest of 3"));
  CHECK_THAT(text, ContainsSubstring("no longer live"));
}

TEST_CASE("comparison: equal runs have no table") {
  const auto program = [] {
    return record([] {
      const buffer first = allocated_in("one", 4096);
      memprof::snapshot("STEP");
    });
  };
  const comparison of = compared(program(), program());
  check_sums(of);
  CHECK(of.is_equal());
  CHECK(of.is_same_moment());
  const std::string text = to_text(of);
  CHECK_THAT(text, ContainsSubstring("after equals before: every operation holds the same bytes"));
  CHECK_THAT(text, !ContainsSubstring("Operation "));
  CHECK_THAT(to_text(of, {}, true), ContainsSubstring("Operation "));
  CHECK_THAT(to_markdown(of), ContainsSubstring("as before**"));
  CHECK(to_json(of)["operations"].empty());
}

TEST_CASE("comparison: equal bytes in other blocks are not equal") {
  const auto program = [](std::size_t count) {
    return record([&] {
      std::vector<buffer> kept;
      for (std::size_t index = 0; index < count; ++index) kept.push_back(allocated_in("one", 1024 / count));
    });
  };
  const comparison of = compared(program(1), program(4));
  check_sums(of);
  CHECK(of.change() == 0);
  CHECK_FALSE(of.is_equal());
  CHECK(row_of(of.sizes, "1024").what == owner_change::went);
  CHECK(row_of(of.sizes, "256").what == owner_change::came);
  CHECK(row_of(of.sizes, "256").after == 1024);
  CHECK_THAT(to_text(of), ContainsSubstring("not in the number or size of its blocks"));
}

TEST_CASE("comparison: equal bytes of another category are not equal") {
  const auto program = [](memprof::category kind) {
    return record([&] {
      const buffer one = allocated_in("one", 100);
      memprof::annotate(one.address(), {.category = kind});
    });
  };
  const comparison of = compared(program(memprof::category::gradient), program(memprof::category::activation));
  CHECK_FALSE(of.is_equal());
  CHECK_THAT(to_text(of), ContainsSubstring("after equals before, but not in its categories"));
  CHECK(row_of(of.categories, "activation").what == owner_change::moved_in);  // it may have been live at another moment
  CHECK(row_of(of.categories, "gradient").what == owner_change::moved_out);
}

TEST_CASE("comparison: a real run and one without dispatch are told apart") {
  const recorded run = record([] { const buffer one = allocated_in("one", 4'000); });
  compared_run simulated = run.run("after");
  simulated.mode = memprof::run_mode::no_dispatch;
  const comparison of = compare_runs({run.run("before")}, {std::move(simulated)});
  CHECK_THAT(to_text(of), ContainsSubstring("the runs' modes differ: before normal, after no_dispatch"));
  CHECK_THAT(to_text(compare_runs({run.run("before")}, {run.run("after")})), !ContainsSubstring("modes"));
}

TEST_CASE("comparison: the difference of reserved bytes is that of the peaks and of what is reserved above them") {
  const auto run = [](const char* title, std::uint64_t block, std::uint64_t reserved) {
    memprof::trace events;
    auto capture = memprof::begin_capture({.trace = &events});
    const memprof::memory_space device{"gpu"};
    const memprof::extend::event_sink sink;
    sink.reserve(device, 0x10000, reserved);
    sink.allocate(device, 0x10000U, block);
    sink.deallocate(device, 0x10000U);
    capture.end();
    const memprof::profile of = capture.profile();
    return compared_run_of(title, of, of.space("gpu"), memprof::stack_table_of(events, true, true));
  };
  const comparison of = compare_runs({run("before", 1'024, 4'096)}, {run("after", 2'048, 8'192)});
  CHECK_THAT(to_text(of, {.columns = 200}),
             ContainsSubstring("Reserved  4.00 KiB before, 8.00 KiB after: +4.00 KiB, of which peak +1.00 KiB, "
                               "reserved above the peak +3.00 KiB\n"));
  const nlohmann::ordered_json reserved = to_json(of)["reserved"];
  CHECK(reserved == nlohmann::ordered_json{{"before_bytes", 4'096},
                                           {"after_bytes", 8'192},
                                           {"change_bytes", 4'096},
                                           {"peak_change_bytes", 1'024},
                                           {"above_peak_change_bytes", 3'072}});
  check_keys(reserved, read_schema("comparison.schema.json").at("definitions").at("reserved"));
  CHECK(to_json(compare_runs({run("before", 8, 0)}, {run("after", 8, 0)}))["reserved"].is_null());
}

TEST_CASE("comparison: caveats of both recordings are said, in the text and in the JSON") {
  recorded before = record([] { const buffer kept = allocated_in("forward", 1'000); });
  recorded after = record([] { const buffer kept = allocated_in("forward", 2'000); });
  before.profile.provenance.remarks = {"sizes are multiples of 512 bytes"};
  after.profile.provenance.remarks = {"sizes are multiples of 512 bytes"};
  after.profile.exact = false;
  const comparison of = compared(before, after);
  const std::string inexact =
      "after: the profile is not exact: events were lost or memory spaces merged, so the bytes may be too small";
  CHECK_THAT(to_text(of, {.columns = 200}),
             ContainsSubstring("Accuracy  sizes are multiples of 512 bytes\n") && ContainsSubstring(inexact + "\n"));
  CHECK(to_json(of)["caveats"] == std::vector<std::string>{"sizes are multiples of 512 bytes", inexact});
}

TEST_CASE("comparison: other memory spaces whose peaks differ are named") {
  const auto program = [](std::size_t on_device) {
    return record([&] {
      const buffer one = allocated_in("one", 4'000);
      const memprof::memory_space device{"gpu:0"};
      memprof::extend::event_sink{}.allocate(device, 0x10U, on_device);
    });
  };
  const comparison of = compared(program(1'000), program(3'000));
  check_sums(of);
  CHECK(of.change() == 0);
  CHECK_FALSE(of.is_equal());
  REQUIRE(of.other_spaces.size() == 1);
  CHECK(of.other_spaces[0].change() == 2'000);
  CHECK_THAT(to_text(of), ContainsSubstring("gpu:0 differs too: peak 1000 B before, 2.93 KiB after (--space gpu:0)"));
  const recorded both = program(1'000);
  compared_run device = compared_run_of("after", both.profile, both.profile.space("gpu:0"),
                                        memprof::stack_table_of(both.events, true, true), compared_moment::peak);
  const comparison mixed = compare_runs({both.run("before")}, {std::move(device)});
  CHECK_FALSE(mixed.is_same_moment());
  CHECK_FALSE(mixed.is_equal());
  CHECK_THAT(to_text(mixed), ContainsSubstring("two memory spaces: cpu before, gpu:0 after"));
}

TEST_CASE("comparison: layers that changed alike are one row, and the one that differs is another") {
  const auto program = [](std::size_t bytes, std::size_t of_last) {
    return record([&] {
      std::vector<buffer> kept;
      for (const char* const layer : {"h.0", "h.1", "h.2"}) kept.push_back(allocated_in(layer, bytes));
      kept.push_back(allocated_in("h.3", of_last));
    });
  };
  const comparison of = compared(program(100, 100), program(150, 900));
  check_sums(of);
  REQUIRE(of.operations.size() == 2);
  CHECK(of.operations[0].owner == "h.3");
  CHECK(of.operations[0].change() == 800);
  CHECK(of.operations[1].owner == "h.*");
  CHECK(of.operations[1].operations == 3);
  CHECK(of.operations[1].change() == 150);
}

TEST_CASE("comparison: what is live at the end, and the greatest peak of a segment's name") {
  const auto program = [](std::size_t leaked, std::size_t of_eval) {
    return record([&] {
      static std::vector<buffer> kept;
      kept.clear();
      { const buffer large = allocated_in("train", 10'000); }
      memprof::snapshot("TRAIN");
      { const buffer small = allocated_in("eval", 10); }
      memprof::snapshot("EVAL");
      { const buffer largest = allocated_in("eval", of_eval); }
      kept.push_back(allocated_in("log", leaked));
      memprof::snapshot("EVAL");
    });
  };
  const recorded before = program(100, 2000);
  const recorded after = program(164, 3000);
  const comparison at_end = compared(before, after, compared_moment::end);
  check_sums(at_end);
  CHECK(at_end.before.bytes == 100);
  CHECK(at_end.change() == 64);
  CHECK(row_of(at_end.operations, "log").change() == 64);
  const comparison of_eval = compare_runs({before.run_of_segment("before", "EVAL")}, {after.run_of_segment("after", "EVAL")});
  check_sums(of_eval);
  CHECK(of_eval.before.bytes == 2000);
  CHECK(of_eval.after.bytes == 3000);
  CHECK(of_eval.after.operation == "eval");
  CHECK_THROWS_MATCHES(
      before.run_of_segment("before", "EVALUATION"), memprof::error,
      MessageMatches(ContainsSubstring("no segment 'EVALUATION'") && ContainsSubstring("; the nearest is 'EVAL'")));
}

TEST_CASE("comparison: a segment with more operations than it lists has a row for the others") {
  const recorded one = record([] {
    std::vector<buffer> kept;
    for (int index = 0; index < 40; ++index) kept.push_back(allocated_in(("op" + std::to_string(index)).c_str(), 100));
    memprof::snapshot("STEP");
  });
  const comparison of = compare_runs({one.run_of_segment("before", "STEP")}, {one.run_of_segment("after", "STEP")});
  check_sums(of);
  CHECK(of.before.bytes == 4000);
  CHECK(row_of(of.operations, "(other operations)").before == 800);
  CHECK(of.is_equal());
}

TEST_CASE("comparison: of several runs on a side, those with the median peak are compared") {
  const auto program = [](std::size_t bytes) {
    return record([&] { const buffer first = allocated_in("one", bytes); }).run("side");
  };
  const comparison apart = compare_runs({program(300), program(100), program(200)}, {program(301), program(900)});
  CHECK(apart.runs_before.least == 100);
  CHECK(apart.runs_before.median == 200);
  CHECK(apart.runs_before.greatest == 300);
  CHECK(apart.before.bytes == 200);
  CHECK(apart.after.bytes == 301);  // the lower of two
  CHECK(apart.are_ranges_apart());
  CHECK_THAT(to_text(apart), ContainsSubstring("more than noise"));
  const comparison overlapping = compare_runs({program(300), program(100)}, {program(300), program(900)});
  CHECK_FALSE(overlapping.are_ranges_apart());
  CHECK_THAT(to_text(overlapping), ContainsSubstring("within the noise"));
  CHECK(to_json(overlapping)["more_than_noise"] == false);
  CHECK(to_json(compare_runs({program(1)}, {program(2)}))["more_than_noise"].is_null());
  CHECK_THROWS_AS(compare_runs({}, {program(1)}), memprof::error);
}

TEST_CASE("comparison: a profile and a trace of one run are equal, without sizes") {
  const recorded one = record([] {
    const buffer first = allocated_in("one", 4096);
    const buffer second = allocated_in("two", 96);
  });
  const comparison of = compare_runs({one.run_of_profile("before")}, {one.run("after")});
  check_sums(of);
  CHECK(of.is_equal());
  CHECK(of.sizes.empty());
}

TEST_CASE("comparison: the rows of random programs add up at the peak and at the end") {
  std::mt19937 random{20261125};
  const auto program = [&] {
    return record([&] {
      std::vector<buffer> live;
      static std::vector<buffer> left;
      left.clear();
      for (int event = 0; event < 200; ++event) {
        const std::string name = "layer." + std::to_string(random() % 5);
        const auto outer = memprof::track_operation(random() % 2 == 0 ? "forward" : "backward");
        if (random() % 3 != 0 || live.empty()) {
          live.push_back(allocated_in(name, random() % 5000));
          if (live.back().address() != nullptr && random() % 4 == 0)
            memprof::annotate(live.back().address(),
                              {.category = random() % 2 == 0 ? memprof::category::activation : memprof::category::parameter});
        } else {
          std::swap(live[random() % live.size()], live.back());
          live.pop_back();
        }
        if (event % 50 == 49) memprof::snapshot(random() % 2 == 0 ? "A" : "B");
      }
      left = std::move(live);
    });
  };
  for (int round = 0; round < 50; ++round) {
    INFO(round);
    const recorded before = program();
    const recorded after = program();
    for (const compared_moment moment : {compared_moment::peak, compared_moment::end})
      check_sums(compared(before, after, moment));
    check_sums(compare_runs({before.run_of_segment("before", "END_TRACE")}, {after.run_of_segment("after", "END_TRACE")}));
    CHECK(compared(before, before).is_equal());
  }
}

TEST_CASE("comparison text: no line is wider than asked, whatever the names") {
  const auto program = [](std::size_t bytes) {
    return record([&] {
      std::vector<buffer> kept;
      for (int index = 0; index < 40; ++index) {
        const std::string name =
            std::string(static_cast<std::size_t>(index) * 4, static_cast<char>('a' + index % 26)) + "/|`\x1b[31m";
        kept.push_back(allocated_in(name, bytes * static_cast<std::size_t>(index + 1)));
      }
    });
  };
  const comparison of = compared(program(10), program(11));
  for (const std::size_t columns : {60U, 80U, 100U}) {
    const std::string text = to_text(of, {.columns = columns});
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) CHECK(memprof::detail::display_width(line) <= columns);
    CHECK(text.find('\x1b') == std::string::npos);
  }
  const std::string markdown = to_markdown(of);
  CHECK(markdown.find('\x1b') == std::string::npos);
  CHECK_THAT(markdown, ContainsSubstring("\\|'"));
  CHECK_THAT(markdown, ContainsSubstring("| 20 others |"));
  CHECK_THAT(markdown, ContainsSubstring("| sum | "));
}

TEST_CASE("comparison JSON: its keys are those of the schema") {
  const auto program = [](std::size_t bytes) {
    return record([&] {
      const buffer first = allocated_in("one", bytes);
      memprof::snapshot("STEP");
    });
  };
  const nlohmann::ordered_json document = to_json(compared(program(10), program(20)));
  const nlohmann::json schema = read_schema("comparison.schema.json");
  const nlohmann::json& definitions = schema.at("definitions");
  check_keys(document, schema);
  check_keys(document["before"], definitions.at("run"));
  check_keys(document["operations"][0], definitions.at("operation"));
  check_keys(document["categories"][0], definitions.at("category"));
  check_keys(document["sizes"][0], definitions.at("size"));
  CHECK(document["change_bytes"] == 10);
  CHECK(document["operations"][0]["what"] == "more");
  CHECK(document["sizes"][0]["least_size"] == 16);
  CHECK(schema["properties"]["version"]["const"] == memprof::comparison_json_version);
}

TEST_CASE("comparison page: it has the JSON, and the curve, segments and moment of both runs") {
  const auto program = [](std::size_t bytes) {
    return record([&] {
      const buffer first = allocated_in("one", bytes);
      memprof::snapshot("FORWARD");
      const buffer second = allocated_in("two", 5);
      memprof::snapshot("BACKWARD");
    });
  };
  const comparison of = compared(program(10), program(20));
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("page.html");
  write_html(of, path);
  const page_reader page{path};
  const nlohmann::ordered_json document = to_json(of);
  for (const auto& [key, value] : document.items()) CHECK(page.run.at(key) == value);
  CHECK(page.run["title"] == "Comparison");
  for (const std::size_t side : {0u, 1u}) {
    const nlohmann::ordered_json& curve = page.run["curves"][side];
    const auto peaks = curve["peaks"].get<std::vector<std::int64_t>>();
    const auto times = curve["times_ns"].get<std::vector<std::int64_t>>();
    CHECK(peaks.size() == times.size());
    CHECK(std::is_sorted(times.begin(), times.end()));
    CHECK(*std::max_element(peaks.begin(), peaks.end()) == (side == 0 ? 15 : 25));
    CHECK(curve["moment_ns"].get<std::int64_t>() >= times.front());
    CHECK(curve["moment_ns"].get<std::int64_t>() <= times.back());
    CHECK(curve["segments"].size() == 3);
    CHECK(curve["segments"][0]["name"] == "FORWARD");
    CHECK(curve["segments"][1]["name"] == "BACKWARD");
    CHECK(curve["segments"][0]["end_ns"] == curve["segments"][1]["begin_ns"]);
  }
}

}  // namespace memprof_tests::analysis_comparison
