#include <memprof/import/profile_summary.hpp>

#include <catch2/catch_test_macros.hpp>

TEST_CASE("profile summary: it has the bytes, names and live set of one memory space") {
  memprof::profile profile;
  profile.complete = true;
  profile.segments = {{"A", 0, 0}, {"B", 0, 0}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "dram";
  space.segments.resize(2);
  space.segments[1].segment_change = -7;
  space.cumulative_peak = 100;
  space.cumulative_current = 93;
  space.peak_segment = 1;
  space.live_at_peak.bytes = 100;

  const memprof::memory_summary summary = memprof::summarize(profile, space, "run.json");
  CHECK(summary.source == "run.json");
  CHECK(summary.line == 0);
  CHECK(summary.space == "dram");
  CHECK(summary.overall_peak == 100);
  CHECK(summary.final_usage == 93);
  CHECK(summary.peak_segment == 1);
  CHECK(summary.resolution == 1);
  CHECK(summary.segments[1].segment == "B");
  CHECK(summary.segments[1].segment_change == -7);
  CHECK(summary.live_at_peak->bytes == 100);
  CHECK(summary.remarks.empty());
}

TEST_CASE("profile summary: what makes a profile's numbers doubtful is a remark") {
  memprof::profile profile;
  profile.exact = false;
  profile.mode = memprof::run_mode::no_dispatch;
  profile.spaces.emplace_back();
  const memprof::memory_summary summary = memprof::summarize(profile, profile.spaces.front(), "run.json");
  CHECK(summary.remarks.size() == 3);
  CHECK(!summary.peak_segment);
}
