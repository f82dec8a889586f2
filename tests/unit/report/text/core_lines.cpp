#include <memprof/report/text/core_lines.hpp>

#include <memprof/format/tracker_log.hpp>
#include <memprof/report/text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include <unit/report/tracker_log.hpp>

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A space with `used` bytes in its only segment, on the whole device or on cores.
memprof::space_profile space_of(const char* name, std::int64_t used) {
  memprof::space_profile space;
  space.name = name;
  memprof::segment_usage& usage = space.segments.emplace_back();
  usage.segment_peak = usage.allocations = usage.segment_change = used;
  usage.cumulative_peak = usage.cumulative_current = space.cumulative_peak = space.cumulative_current = used;
  space.peak_segment = 0;
  return space;
}

memprof::space_profile on_cores(const char* name, const memprof::core_peaks& peaks) {
  memprof::space_profile space = space_of(name, 64 * peaks.total);
  space.cores = {peaks, {peaks}, {{"[0-0 - 7-7]", peaks}}, {}};
  return space;
}

memprof::profile training() {
  memprof::profile profile;
  profile.complete = true;
  profile.segments = {{"FORWARD_PASS", 0, 0}};
  // 0.29 MB as in the tracker's document: 304,087 bytes are 0.29 * 2^20.
  profile.spaces = {on_cores("l1", {304'087, mib / 4, mib / 2, "3-4"}), space_of("cpu", mib), space_of("dram", 2 * mib),
                    on_cores("l1_small", {0, 4096, 4096, "0-0"})};
  return profile;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("core lines: after those of DRAM comes the tracker's line of L1, byte for byte, in place of two lines of usage") {
  const std::string expected =
      "=== Memory Usage Summary ===\n"
      "\n"
      "--- FORWARD_PASS ---\n"
      "  DRAM: Segment Peak 2.00 MB, Allocations 2.00 MB, Deallocations 0.00 MB, Segment Change +2.00 MB\n"
      "  DRAM: Cumulative Peak 2.00 MB, Cumulative Current 2.00 MB\n"
      "  L1: Peak CB 0.29 MB, Peak Buffer 0.25 MB, Peak Total 0.50 MB\n"
      "  L1_SMALL: Peak CB 0.00 MB, Peak Buffer 0.00 MB, Peak Total 0.00 MB\n"
      "  cpu: Segment Peak 1.00 MB, Allocations 1.00 MB, Deallocations 0.00 MB, Segment Change +1.00 MB\n"
      "  cpu: Cumulative Peak 1.00 MB, Cumulative Current 1.00 MB\n"
      "\n"
      "=== Final Totals ===\n"
      "Overall DRAM Peak: 2.00 MB, Final DRAM Usage: 2.00 MB\n"
      "Overall L1: Peak CB 0.29 MB, Peak Buffer 0.25 MB, Peak Total 0.50 MB\n"
      "Overall cpu Peak: 1.00 MB, Final cpu Usage: 1.00 MB\n"
      "Overall L1_SMALL: Peak CB 0.00 MB, Peak Buffer 0.00 MB, Peak Total 0.00 MB\n"
      "\n"
      "DRAM stands for the memory space dram.\n";
  CHECK(memprof::to_text(training()).substr(0, expected.size()) == expected);
}

TEST_CASE("core lines: analyze and the public parsers read the summary as if the lines of L1 were not there") {
  memprof::profile without = training();
  std::erase_if(without.spaces, [](const memprof::space_profile& space) { return space.name.starts_with("l1"); });
  const std::string text = memprof::to_text(training());
  const auto read = memprof::parse_tracker_log(text + text, "run.log");
  const auto expected = memprof::parse_tracker_log(memprof::to_text(without), "run.log");
  REQUIRE(read.size() == 2);
  for (const memprof::profile& summary : read) {
    CHECK(summary.spaces == expected[0].spaces);
    CHECK(summary.spaces[0].cumulative_peak == 2 * mib);
    CHECK(summary.spaces[0].cumulative_current == 2 * mib);
    CHECK(summary.provenance.remarks == expected[0].provenance.remarks);
  }
  const auto extracted = memprof_tests::extracted_log(text);
  REQUIRE(extracted.phases.size() == 1);
  CHECK(extracted.phases[0].segment_peak == 2.0);
  CHECK(extracted.overall_peak == 2.0);
}

TEST_CASE("core lines: a space on cores stands for DRAM only where it is asked for") {
  memprof::profile profile = training();
  std::erase_if(profile.spaces, [](const memprof::space_profile& space) { return space.name == "dram"; });
  CHECK(contains(memprof::to_text(profile), "DRAM stands for the memory space cpu."));
  CHECK(contains(memprof::to_text(profile, {.primary_space = "l1"}), "DRAM: Segment Peak 32.00 MB,"));
  std::erase_if(profile.spaces, [](const memprof::space_profile& space) { return space.name == "cpu"; });
  const std::string text = memprof::to_text(profile);
  CHECK(contains(text, "  DRAM: Segment Peak 0.00 MB,"));
  CHECK(contains(text, "  L1: Peak CB 0.29 MB,"));
  CHECK(contains(text, "Peak of l1 on all cores together: 32.00 MB"));
  profile.segments.clear();
  profile.complete = false;
  CHECK(contains(memprof::to_text(profile), "Peak of l1 on all cores together: 32.00 MB"));
}

TEST_CASE("core lines: no name of a space makes a line that parsers take for one of DRAM") {
  memprof::profile profile = training();
  profile.spaces[0].name = "my_dram";
  CHECK(contains(memprof::to_text(profile), "  MY_DRAM space: Peak CB 0.29 MB,"));
  profile.spaces[0].name = "l1\n--- X ---";
  CHECK(contains(memprof::to_text(profile), "  L1\\N--- X ---: Peak CB 0.29 MB,"));
}

TEST_CASE("core lines: the busiest core is named, and the first rectangles with their peaks") {
  memprof::core_profile cores;
  cores.peaks = {600'000, 500'000, 1'048'576, "3-4"};
  cores.ranges = {{"[0-0 - 7-7]", cores.peaks}, {"[0-0 - 1-1]", {0, 500'000, 500'000, "0-0"}}, {"[5-5 - 5-5]", {}}};
  std::string text;
  memprof::detail::append_core_ranges(text, cores, 2);
  CHECK(text ==
        "  On one core at most 1.00 MB (1048576 bytes), first of all on core 3-4:\n"
        "         Peak CB      Peak Buffer       Peak Total  Cores\n"
        "         0.57 MB          0.48 MB          1.00 MB  [0-0 - 7-7]\n"
        "         0.00 MB          0.48 MB          0.48 MB  [0-0 - 1-1]\n"
        "    (1 more rectangle)\n");
  text.clear();
  memprof::detail::append_core_ranges(text, cores, 0);
  CHECK(text == "  On one core at most 1.00 MB (1048576 bytes), first of all on core 3-4\n");
}
