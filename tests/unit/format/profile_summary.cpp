#include <memprof/format/profile_summary.hpp>

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

TEST_CASE("profile summary: it has the capacity, and a remark on the first allocation beyond it") {
  memprof::profile profile;
  profile.complete = true;
  profile.device = "small";
  profile.segments = {{"FORWARD_PASS", 0, 0}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.segments.resize(1);
  CHECK(!memprof::summarize(profile, space, "run.json").capacity);
  space.capacity = 1000;
  CHECK(memprof::summarize(profile, space, "run.json").remarks.empty());
  space.first_shortfall.requested = 250;
  space.first_shortfall.free = 100;
  space.first_shortfall.segment = 0;
  space.first_shortfall.operation = "attention";
  const memprof::memory_summary summary = memprof::summarize(profile, space, "run.json");
  CHECK(summary.device == "small");
  CHECK(summary.capacity == 1000);
  REQUIRE(summary.remarks.size() == 1);
  CHECK(summary.remarks[0] ==
        "an allocation of 250 bytes in operation attention in segment FORWARD_PASS was the first beyond the capacity: 100 bytes "
        "were free");
}

TEST_CASE("profile summary: the capacity of each core is a remark and not the device's memory, and a shortfall names the core") {
  memprof::profile profile;
  profile.complete = true;
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "l1";
  space.capacity = 1000;
  space.capacity_is_per_core = true;
  space.first_shortfall.requested = 250;
  space.first_shortfall.free = 100;
  space.first_shortfall.core = "3-1";
  const memprof::memory_summary summary = memprof::summarize(profile, space, "run.json");
  CHECK(!summary.capacity);
  REQUIRE(summary.remarks.size() == 2);
  CHECK(
      summary.remarks[0] ==
      "each core has 1000 bytes of l1, but the bytes here are those of all cores together: the device memory is not that of the "
      "profile");
  CHECK(summary.remarks[1] == "an allocation of 250 bytes on core 3-1 was the first beyond the capacity: 100 bytes were free");
}
