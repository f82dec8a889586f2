#include <memprof/report/text.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <toolkit/analysis/tracker_log.hpp>

namespace memprof_tests::report_text_segment_lines {

using Catch::Matchers::WithinAbs;
using memprof_tests::tracker_log;
using memprof_tests::tracker_phase;

namespace {

constexpr double megabyte = 1 << 20;
constexpr double rounding = 0.005 + 1e-9;  // of two decimals

struct movement {
  std::int64_t segment_peak = 0;
  std::int64_t allocations = 0;
  std::int64_t deallocations = 0;
};

/// A profile of one space from what happened in each segment, by the rules of the tracker.
memprof::space_profile space_of(const char* name, const std::vector<movement>& movements) {
  memprof::space_profile space;
  space.name = name;
  for (const movement& moved : movements) {
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment_peak = moved.segment_peak;
    usage.allocations = moved.allocations;
    usage.deallocations = moved.deallocations;
    usage.segment_change = moved.allocations - moved.deallocations;
    space.cumulative_peak = usage.cumulative_peak =
        std::max(space.cumulative_peak, space.cumulative_current + moved.segment_peak);
    space.cumulative_current = usage.cumulative_current = space.cumulative_current + usage.segment_change;
  }
  return space;
}

std::string tracker_text(const memprof::profile& profile, memprof::text_options options = {}) {
  options.format = memprof::text_format::tracker;
  return memprof::to_text(profile, options);
}

memprof::profile random_profile(std::mt19937_64& random) {
  memprof::profile result;
  result.exact = true;
  const std::size_t segments = 1 + random() % 6;
  std::vector<std::vector<movement>> movements(1 + random() % 3);
  for (std::vector<movement>& of_space : movements) {
    std::int64_t live = 0;
    for (std::size_t index = 0; index < segments; ++index) {
      const auto up_to = [&random](std::int64_t most) {
        const auto shift = random() % 44;  // sizes of every magnitude, zero too
        return static_cast<std::int64_t>((random() >> (20 + shift)) % static_cast<std::uint64_t>(most + 1));
      };
      movement moved;
      moved.allocations = up_to(std::int64_t{1} << 44);
      moved.deallocations = up_to(live + moved.allocations);
      moved.segment_peak = std::max<std::int64_t>(0, moved.allocations - moved.deallocations) + up_to(1 << 30);
      live += moved.allocations - moved.deallocations;
      of_space.push_back(moved);
    }
  }
  for (std::size_t index = 0; index < segments; ++index) result.segments.push_back({"PHASE_" + std::to_string(index), 0, 0});
  const char* const names[] = {"cpu", "dram", "my DRAM"};
  for (std::size_t index = 0; index < movements.size(); ++index) {
    result.spaces.push_back(space_of(names[index], movements[index]));
  }
  return result;
}

void check_phase(const tracker_phase& read, const memprof::segment_usage& usage) {
  const auto check = [](double found, std::int64_t bytes) {
    CHECK_THAT(found, WithinAbs(static_cast<double>(bytes) / megabyte, rounding));
  };
  check(read.segment_peak, usage.segment_peak);
  check(read.allocations, usage.allocations);
  check(read.deallocations, usage.deallocations);
  check(read.segment_change, usage.segment_change);
  check(read.cumulative_peak, usage.cumulative_peak);
  check(read.cumulative_current, usage.cumulative_current);
}

}  // namespace

TEST_CASE("segment lines: they are the tracker's, byte for byte") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"MODEL_CREATION", 0, 0}, {"OPTIMIZER_CREATION", 0, 0}, {"END_TRACE", 0, 0}};
  constexpr std::int64_t mib = 1 << 20;
  profile.spaces = {space_of("dram", {{2 * mib, 3 * mib, mib / 4}, {0, 0, 0}, {mib / 2, mib, 3 * mib}})};
  const std::string text = tracker_text(profile);
  const std::string expected =
      "=== Memory Usage Summary ===\n"
      "\n"
      "--- MODEL_CREATION ---\n"
      "  DRAM: Segment Peak 2.00 MB, Allocations 3.00 MB, Deallocations 0.25 MB, Segment Change +2.75 MB\n"
      "  DRAM: Cumulative Peak 2.00 MB, Cumulative Current 2.75 MB\n"
      "--- OPTIMIZER_CREATION ---\n"
      "  DRAM: Segment Peak 0.00 MB, Allocations 0.00 MB, Deallocations 0.00 MB, Segment Change +0.00 MB\n"
      "  DRAM: Cumulative Peak 2.75 MB, Cumulative Current 2.75 MB\n"
      "--- END_TRACE ---\n"
      "  DRAM: Segment Peak 0.50 MB, Allocations 1.00 MB, Deallocations 3.00 MB, Segment Change -2.00 MB\n"
      "  DRAM: Cumulative Peak 3.25 MB, Cumulative Current 0.75 MB\n"
      "\n"
      "=== Final Totals ===\n"
      "Overall DRAM Peak: 3.25 MB, Final DRAM Usage: 0.75 MB\n"
      "\n";
  CHECK(text == expected);
}

TEST_CASE("segment lines: the public parsers of tt-train's logs read the numbers back") {
  constexpr std::uint64_t seed = 20240602;
  std::mt19937_64 random{seed};
  for (int round = 0; round < 50; ++round) {
    const memprof::profile profile = random_profile(random);
    INFO("seed " << seed << ", round " << round);
    const std::string text = tracker_text(profile);
    // Without a space named "dram" the only one is "cpu".
    const memprof::space_profile& primary = profile.spaces[profile.spaces.size() == 1 ? 0 : 1];

    const std::vector<std::string> summaries = memprof_tests::tracker_summaries("before\n" + text + text);
    REQUIRE(summaries.size() == 2);
    CHECK(summaries[0] == summaries[1]);
    CHECK_THAT(memprof_tests::analyzed_peak(summaries[0]),
               WithinAbs(static_cast<double>(primary.cumulative_peak) / megabyte, rounding));
    const tracker_log log = memprof_tests::extracted_log(text);
    CHECK_THAT(log.overall_peak, WithinAbs(static_cast<double>(primary.cumulative_peak) / megabyte, rounding));
    CHECK_THAT(log.final_usage, WithinAbs(static_cast<double>(primary.cumulative_current) / megabyte, rounding));
    REQUIRE(log.phases.size() == profile.segments.size());
    for (std::size_t index = 0; index < profile.segments.size(); ++index) {
      CHECK(log.phases[index].name == profile.segments[index].name);
      check_phase(log.phases[index], primary.segments[index]);
      check_phase(memprof_tests::analyzed_phase(summaries[0], profile.segments[index].name), primary.segments[index]);
    }
  }
}

TEST_CASE("segment lines: a real log is reproduced from its numbers") {
  std::ifstream file{MEMPROF_SOURCE_DIR "/../shared/data/tt_train/pr50909_partial.log"};
  if (!file) SKIP("the log of tt-metal's pull request 50909 is not on this machine");
  const std::string original{std::istreambuf_iterator<char>{file}, {}};
  const tracker_log log = memprof_tests::extracted_log(original);
  REQUIRE(log.phases.size() == 5);

  memprof::profile profile;
  profile.exact = true;
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "dram";
  const auto bytes = [](double megabytes) { return std::llround(megabytes * megabyte); };
  for (const tracker_phase& phase : log.phases) {
    profile.segments.push_back({phase.name, 0, 0});
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment_peak = bytes(phase.segment_peak);
    usage.allocations = bytes(phase.allocations);
    usage.deallocations = bytes(phase.deallocations);
    usage.segment_change = bytes(phase.segment_change);
    usage.cumulative_peak = bytes(phase.cumulative_peak);
    usage.cumulative_current = bytes(phase.cumulative_current);
  }
  const std::string expected = std::regex_replace(original, std::regex{R"(  L1:[^\n]*\n?)"}, "");
  CHECK(tracker_text(profile).substr(0, expected.size()) == expected);
}

TEST_CASE("segment lines: a summary's title is found in the line before it") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"END_TRACE", 0, 0}};
  const std::string text = tracker_text(profile);
  const std::string log = text + "Training with 2 blocks\nNumber of parameters: 100\n" + text;
  CHECK(memprof_tests::analyzed_section(log.substr(0, log.rfind("=== Memory Usage Summary ==="))) == "Training with 2 blocks");
}

TEST_CASE("segment lines: no segment is said in the tracker's words") {
  CHECK(tracker_text({}) == "WARNING: No traces captured\n");
}

TEST_CASE("segment lines: segments without any space are zeros") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"END_TRACE", 0, 0}};
  const tracker_log log = memprof_tests::extracted_log(tracker_text(profile));
  REQUIRE(log.phases.size() == 1);
  check_phase(log.phases[0], {});
  CHECK(log.overall_peak == 0.0);
}

TEST_CASE("segment lines: which space is called DRAM") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"END_TRACE", 0, 0}};
  constexpr std::int64_t mib = 1 << 20;
  const auto chosen = [&](const std::vector<const char*>& names, const memprof::text_options& options = {}) -> std::string {
    profile.spaces.clear();
    for (const char* const name : names) {
      const auto bytes = static_cast<std::int64_t>(profile.spaces.size() + 1) * mib;
      profile.spaces.push_back(space_of(name, {{bytes, bytes, 0}}));
    }
    const double peak = memprof_tests::extracted_log(tracker_text(profile, options)).overall_peak;
    return names.at(static_cast<std::size_t>(peak) - 1);
  };
  CHECK(chosen({"cpu", "cuda:0", "dram"}) == "dram");
  CHECK(chosen({"cpu", "cuda:0", "cuda:1"}) == "cuda:0");
  CHECK(chosen({"cpu"}) == "cpu");
  CHECK(chosen({"cpu", "cuda:0", "dram"}, {.primary_space = "cpu"}) == "cpu");
  CHECK_THROWS_AS(chosen({"cpu"}, {.primary_space = "l1"}), memprof::error);
}

TEST_CASE("segment lines: further spaces have no line: the tracker knows none") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"A", 0, 0}};
  constexpr std::int64_t mib = 1 << 20;
  profile.spaces = {space_of("cpu", {{mib, mib, 0}}), space_of("dram", {{2 * mib, 2 * mib, 0}})};
  CHECK(tracker_text(profile) ==
        "=== Memory Usage Summary ===\n"
        "\n"
        "--- A ---\n"
        "  DRAM: Segment Peak 2.00 MB, Allocations 2.00 MB, Deallocations 0.00 MB, Segment Change +2.00 MB\n"
        "  DRAM: Cumulative Peak 2.00 MB, Cumulative Current 2.00 MB\n"
        "\n"
        "=== Final Totals ===\n"
        "Overall DRAM Peak: 2.00 MB, Final DRAM Usage: 2.00 MB\n"
        "\n");
}

TEST_CASE("segment lines: names cannot break the format") {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"A ---\n--- B\r\x1b[2J\t", 0, 0}};
  const std::string text = tracker_text(profile);
  CHECK(text.find("\n--- A ---\\n--- B\\x0d\\x1b[2J\\t ---\n") != std::string::npos);
}

TEST_CASE("segment lines: every segment that the profile has") {
  memprof::profile profile;
  profile.exact = true;
  for (int index = 0; index < 300; ++index) profile.segments.push_back({"STEP", 0, 0});
  CHECK(memprof_tests::extracted_log(tracker_text(profile)).phases.size() == 300);
}

TEST_CASE("segment lines: the reader of logs takes them back to the hundredth of a MB") {
  constexpr std::uint64_t seed = 7;
  std::mt19937_64 random{seed};
  for (int round = 0; round < 20; ++round) {
    const memprof::profile profile = random_profile(random);
    const memprof::space_profile& primary = profile.spaces[profile.spaces.size() == 1 ? 0 : 1];
    const std::vector<memprof::profile> read = memprof::parse_tracker_log(tracker_text(profile));
    REQUIRE(read.size() == 1);
    REQUIRE(read[0].spaces[0].segments.size() == primary.segments.size());
    const auto same = [](std::int64_t left, std::int64_t right) { return std::abs(left - right) <= 5243; };
    CHECK(same(read[0].spaces[0].cumulative_peak, primary.cumulative_peak));
    for (std::size_t index = 0; index < primary.segments.size(); ++index) {
      CHECK(same(read[0].spaces[0].segments[index].segment_change, primary.segments[index].segment_change));
    }
  }
}

}  // namespace memprof_tests::report_text_segment_lines
