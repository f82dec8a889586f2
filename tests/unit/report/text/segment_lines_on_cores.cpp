#include <memprof/report/text/segment_lines.hpp>

#include <memprof/report/text.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include <toolkit/analysis/tracker_log.hpp>

namespace memprof_tests::report_text_segment_lines_on_cores {

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
  profile.exact = true;
  profile.complete = true;
  profile.segments = {{"FORWARD_PASS", 0, 0}};
  // 0.29 MB as in the tracker's document: 304,087 bytes are 0.29 * 2^20.
  profile.spaces = {on_cores("l1", {304'087, mib / 4, mib / 2, "3-4"}), space_of("cpu", mib), space_of("dram", 2 * mib),
                    on_cores("l1_small", {0, 4096, 4096, "0-0"})};
  return profile;
}

std::string tracker_text(const memprof::profile& profile, memprof::text_options options = {}) {
  options.format = memprof::text_format::tracker;
  return memprof::to_text(profile, options);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "segment lines on cores: after those of DRAM comes the tracker's line of L1, byte for byte, in place of two lines of usage") {
  CHECK(tracker_text(training()) ==
        "=== Memory Usage Summary ===\n"
        "\n"
        "--- FORWARD_PASS ---\n"
        "  DRAM: Segment Peak 2.00 MB, Allocations 2.00 MB, Deallocations 0.00 MB, Segment Change +2.00 MB\n"
        "  DRAM: Cumulative Peak 2.00 MB, Cumulative Current 2.00 MB\n"
        "  L1: Peak CB 0.29 MB, Peak Buffer 0.25 MB, Peak Total 0.50 MB\n"
        "  L1_SMALL: Peak CB 0.00 MB, Peak Buffer 0.00 MB, Peak Total 0.00 MB\n"
        "\n"
        "=== Final Totals ===\n"
        "Overall DRAM Peak: 2.00 MB, Final DRAM Usage: 2.00 MB\n"
        "\n");
}

TEST_CASE("segment lines on cores: a device with cores has the line also where nothing was on them, and other devices do not") {
  memprof::profile profile = training();
  erase_if(profile.spaces, [](const memprof::space_profile& space) { return space.name == "l1_small"; });
  profile.spaces[0].cores = {};
  CHECK(!contains(tracker_text(profile), "L1"));
  profile.spaces[0].capacity_is_per_core = true;
  CHECK(contains(tracker_text(profile), "  L1: Peak CB 0.00 MB, Peak Buffer 0.00 MB, Peak Total 0.00 MB\n"));
}

TEST_CASE("segment lines on cores: analyze and the public parsers read the summary as if the lines of L1 were not there") {
  memprof::profile without = training();
  erase_if(without.spaces, [](const memprof::space_profile& space) { return space.name.starts_with("l1"); });
  const std::string text = tracker_text(training());
  const auto read = memprof::parse_tracker_log(text + text, "run.log");
  const auto expected = memprof::parse_tracker_log(tracker_text(without), "run.log");
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

TEST_CASE("segment lines on cores: a space on cores stands for DRAM only where it is asked for") {
  memprof::profile profile = training();
  erase_if(profile.spaces, [](const memprof::space_profile& space) { return space.name == "dram"; });
  CHECK(contains(tracker_text(profile), "DRAM: Segment Peak 1.00 MB,"));
  const std::string chosen = tracker_text(profile, {.primary_space = "l1"});
  CHECK(contains(chosen, "DRAM: Segment Peak 32.00 MB,"));
  CHECK(!contains(chosen, "  L1:"));
  erase_if(profile.spaces, [](const memprof::space_profile& space) { return space.name == "cpu"; });
  const std::string text = tracker_text(profile);
  CHECK(contains(text, "  DRAM: Segment Peak 0.00 MB,"));
  CHECK(contains(text, "  L1: Peak CB 0.29 MB,"));
}

TEST_CASE("segment lines on cores: no name of a space makes a line that parsers take for one of DRAM") {
  memprof::profile profile = training();
  profile.spaces[0].name = "my_dram";
  CHECK(contains(tracker_text(profile), "  MY_DRAM space: Peak CB 0.29 MB,"));
  profile.spaces[0].name = "l1\n--- X ---";
  CHECK(contains(tracker_text(profile), "  L1\\N--- X ---: Peak CB 0.29 MB,"));
}

}  // namespace memprof_tests::report_text_segment_lines_on_cores
