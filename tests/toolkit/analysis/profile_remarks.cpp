#include <memprof/toolkit/analysis/profile_remarks.hpp>

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::analysis_profile_remarks {

using memprof::remarks_on;

namespace {

/// A complete profile with one empty space, of which there is nothing to remark.
memprof::profile faultless() {
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.spaces.emplace_back();
  return profile;
}

std::vector<std::string> remarks_of(const memprof::profile& profile) { return remarks_on(profile, profile.spaces.front()); }

}  // namespace

TEST_CASE("profile remarks: what makes a profile's numbers doubtful is a remark") {
  memprof::profile profile = faultless();
  CHECK(remarks_of(profile).empty());
  profile.exact = false;
  profile.complete = false;
  profile.mode = memprof::run_mode::no_dispatch;
  CHECK(remarks_of(profile).size() == 3);
}

TEST_CASE("profile remarks: those of the source come first, and a log that breaks off is no capture that had not ended") {
  memprof::profile profile = faultless();
  profile.complete = false;
  profile.provenance.format = "tracker_log";
  profile.provenance.remarks = {"the final totals are missing"};
  CHECK(remarks_of(profile) == std::vector<std::string>{"the final totals are missing"});
}

TEST_CASE("profile remarks: rounded numbers do not contradict each other here, their reader compares them") {
  memprof::profile profile = faultless();
  profile.spaces.front().cumulative_current = 1;
  CHECK(remarks_of(profile).size() > 0);
  profile.provenance.rounding = 10486;
  CHECK(remarks_of(profile).empty());
}

TEST_CASE("profile remarks: what was not captured is named, with the reason") {
  memprof::profile profile = faultless();
  profile.facts = {memprof::extend::to_table<memprof::missing_source>({{"CUDA", "there is no\nCUDA device"}})};
  CHECK(remarks_of(profile) == std::vector<std::string>{"CUDA not captured: there is no\\nCUDA device"});
}

TEST_CASE("profile remarks: how much of malloc's memory was not recorded is said in units, as in the summary") {
  memprof::profile profile = faultless();
  memprof::process_memory reading;
  reading.moment = "most_resident";
  reading.resident_bytes = std::int64_t{400} << 20;
  reading.heap_bytes = std::int64_t{200} << 20;
  reading.free_heap_bytes = 0;
  reading.heap_before_bytes = 0;
  reading.unrecorded_heap_bytes = std::int64_t{114} << 20;
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
  CHECK(remarks_of(profile) ==
        std::vector<std::string>{"114 MiB of malloc's blocks were not recorded: the bytes here lack them"});
}

TEST_CASE("profile remarks: libraries whose events are missing are named, with what to do") {
  memprof::profile profile = faultless();
  profile.exact = false;
  profile.facts = {memprof::extend::to_table<memprof::unrecorded_module>({{"/opt/plugin.so"}})};
  const std::vector<std::string> remarks = remarks_of(profile);
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[1] ==
        "what /opt/plugin.so allocated is missing: it has a registry of its own; link the executable with -rdynamic");
}

TEST_CASE("profile remarks: numbers that rest on what a simulated run assumed are said to, not to lack events") {
  memprof::profile profile = faultless();
  profile.exact = false;
  profile.provenance.assumed = true;
  CHECK(remarks_of(profile) ==
        std::vector<std::string>{"the profile is not exact: the bytes rest on values or sizes that the simulated run assumed"});
}

TEST_CASE("profile remarks: the first allocation beyond the capacity is one, the capacity alone is none") {
  memprof::profile profile = faultless();
  profile.segments = {{"FORWARD_PASS", 0, 0}};
  memprof::space_profile& space = profile.spaces.front();
  space.segments.resize(1);
  space.segments[0].segment = "FORWARD_PASS";
  space.capacity = 1000;
  CHECK(remarks_of(profile).empty());
  space.first_shortfall.requested = 250;
  space.first_shortfall.free = 100;
  space.first_shortfall.segment = 0;
  space.first_shortfall.operation = "attention";
  CHECK(remarks_of(profile) ==
        std::vector<std::string>{
            "an allocation of 250 bytes in operation attention in segment FORWARD_PASS was the first to exceed "
            "the capacity: 100 bytes were free"});
}

TEST_CASE("profile remarks: the capacity of each core is one, and a shortfall names the core") {
  memprof::profile profile = faultless();
  memprof::space_profile& space = profile.spaces.front();
  space.name = "l1";
  space.capacity = 1000;
  space.capacity_is_per_core = true;
  space.first_shortfall.requested = 250;
  space.first_shortfall.free = 100;
  space.first_shortfall.core = "3-1";
  const std::vector<std::string> remarks = remarks_of(profile);
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[0] ==
        "each core has 1000 bytes of l1, but the bytes here are totals across all cores: the device memory is not taken from "
        "the profile");
  CHECK(remarks[1] == "an allocation of 250 bytes on core 3-1 was the first to exceed the capacity: 100 bytes were free");
}

TEST_CASE("profile remarks: what contradicts itself in a profile is one") {
  memprof::profile profile = faultless();
  profile.spaces.front().cumulative_peak = 100;
  CHECK(remarks_of(profile) ==
        std::vector<std::string>{"the profile contradicts itself: live_at_peak.bytes is 0, but cumulative_peak is 100"});
}

TEST_CASE("profile remarks: those of several runs have the title of their run, unless all have them") {
  CHECK(memprof::titled_remarks({"before", "after"}, {{"a", "b"}, {"c", "a"}}) ==
        std::vector<std::string>{"a", "before: b", "after: c"});
}

}  // namespace memprof_tests::analysis_profile_remarks
