#include <memprof/detail/vector.hpp>
#include <memprof/profile/contradictions.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace memprof_tests::profile_contradictions {

using memprof::profile;
using memprof::space_profile;

namespace {

/// Two segments: 60 bytes and 40 beside them for a moment; then 50 more, of which 30 stay.
profile consistent_profile() {
  profile result;
  result.segments = {{"A", 0, 10}, {"B", 10, 20}};
  space_profile& space = result.spaces.emplace_back();
  space.name = "cpu";
  space.cumulative_peak = 110;
  space.cumulative_current = 90;
  space.allocations = 150;
  space.deallocations = 60;
  space.allocation_count = 4;
  space.deallocation_count = 2;
  space.peak_segment = 1;
  space.live_at_peak = {110, 3, {{"forward", 60, 1}}, 50, 2, {{"activation", 110, 3}}, {}};
  for (const std::int64_t bytes : {60, 50}) space.live_at_peak.largest_blocks.emplace_back().bytes = bytes;
  space.segments = {{"A", 100, 100, 40, 60, 100, 60, 2, 1, 5, "", {100, 2, {{"forward", 100, 2}}, 0, 0, {}, {}}},
                    {"B", 50, 50, 20, 30, 110, 90, 2, 1, 15, "", {110, 3, {}, 0, 0, {}, {}}}};
  space.timeline.points = {{0, 100, 60}, {10, 110, 90}};
  return result;
}

memprof::vector<std::string> after(const std::function<void(space_profile&)>& change) {
  profile changed = consistent_profile();
  change(changed.spaces[0]);
  return memprof::contradictions(changed, changed.spaces[0]);
}

/// Two spaces that share a memory: 110 and 40 bytes at most, and 130 together.
profile shared_profile() {
  profile result = consistent_profile();
  space_profile& other = result.spaces.emplace_back();
  other.name = "pinned";
  other.cumulative_peak = 40;
  other.cumulative_current = 10;
  memprof::memory_profile& memory = result.memories.emplace_back();
  memory.name = "host";
  memory.cumulative_peak = 130;
  memory.cumulative_current = 100;
  memory.peak_space = "cpu";
  memory.spaces = {{"cpu", 100, 2}, {"pinned", 30, 1}};
  memory.live_at_peak = {130, 3, {{"forward", 130, 3}}, 0, 0, {{"activation", 130, 3}}, {}};
  return result;
}

memprof::vector<std::string> after_memory(const std::function<void(memprof::memory_profile&)>& change) {
  profile changed = shared_profile();
  change(changed.memories[0]);
  return memprof::contradictions(changed, changed.memories[0]);
}

using sentences = memprof::vector<std::string>;

}  // namespace

TEST_CASE("contradictions: there are none where all sums and peaks agree, nor in an empty space") {
  CHECK(after([](space_profile&) {}).empty());
  const space_profile empty;
  CHECK(memprof::contradictions(profile{}, empty).empty());
}

TEST_CASE("contradictions: each is a sentence with the place and both numbers") {
  CHECK(after([](space_profile& space) { space.allocations = 151; }) ==
        sentences{"cumulative_current is 90, but allocations - deallocations is 91",
                  "allocations is 151, but the sum over the segments is 150"});
  CHECK(after([](space_profile& space) { space.deallocation_count = 3; }) ==
        sentences{"deallocation_count is 3, but the sum over the segments is 2"});
  CHECK(after([](space_profile& space) { space.cumulative_peak = 80; }) ==
        sentences{"cumulative_peak is 80, less than cumulative_current, 90",
                  "live_at_peak.bytes is 110, but cumulative_peak is 80",
                  "cumulative_peak of the segment that peak_segment names is 110, but that of the space is 80",
                  "the greatest peak of the timeline is 110, but cumulative_peak is 80",
                  "cumulative_peak is 80, but that of the last segment is 110"});
  CHECK(after([](space_profile& space) { space.peak_segment = 0; }) ==
        sentences{"cumulative_peak of the segment that peak_segment names is 100, but that of the space is 110"});
  CHECK(after([](space_profile& space) { space.live_at_peak.by_category[0].bytes = 109; }) ==
        sentences{"the sum of live_at_peak.by_category of the space is 109, but live_at_peak.bytes is 110"});
  CHECK(after([](space_profile& space) { space.live_at_peak.remaining_bytes = 0; }) ==
        sentences{"the sum of live_at_peak.by_operation and its rest of the space is 60, but live_at_peak.bytes is 110"});
  CHECK(after([](space_profile& space) { space.live_at_peak.largest_blocks[0].bytes = 61; }) ==
        sentences{"live_at_peak.bytes of the space is 110, less than the sum of its largest_blocks, 111"});
  CHECK(after([](space_profile& space) { space.segments[0].segment_peak = 59; }) ==
        sentences{"segment_peak of segment A (1 of 2) is 59, less than segment_change, 60",
                  "cumulative_peak of segment A (1 of 2) is 100, but the greatest live bytes so far is 59"});
  CHECK(after([](space_profile& space) { space.segments[1].segment_change = 31; }) ==
        sentences{"segment_change of segment B (2 of 2) is 31, but allocations - deallocations is 30",
                  "cumulative_current of segment B (2 of 2) is 90, but that of the segment before and segment_change is 91"});
  CHECK(
      after([](space_profile& space) { space.segments[0].live_at_peak.bytes = 99; }) ==
      sentences{"the sum of live_at_peak.by_operation and its rest of segment A (1 of 2) is 100, but live_at_peak.bytes is 99"});
  CHECK(after([](space_profile& space) { space.segments[1].segment = "C"; }) ==
        sentences{"the name of segment C (2 of 2) is not that in the list of segments, B"});
}

TEST_CASE("contradictions: of each rule only the first place that breaks it is named") {
  const sentences found = after([](space_profile& space) {
    space.segments.clear();
    for (int count = 0; count < 1000; ++count) space.segments.emplace_back().segment_change = 1;
  });
  CHECK(found.size() < 20);
}

TEST_CASE("contradictions: sums of any numbers are held at the ends, not wrapped") {
  CHECK(!after([](space_profile& space) {
           for (memprof::segment_usage& usage : space.segments) {
             usage.allocations = usage.segment_peak = INT64_MAX;
             usage.cumulative_current = INT64_MIN;
             usage.segment_change = INT64_MIN;
           }
         }).empty());
}

TEST_CASE("contradictions: segments between which others are missing need not meet, and sums by name must be the totals") {
  profile folded = consistent_profile();
  folded.segments[0].number = 0;
  folded.segments[1].number = 7;
  folded.segment_count = 8;
  space_profile& space = folded.spaces[0];
  // Between A, which ended with 60 bytes live, and B, which began with 110 and ended with 140, others rose to 170.
  space.segments[1].cumulative_current = 140;
  space.segments[1].cumulative_peak = 170;
  space.cumulative_peak = space.live_at_peak.bytes = 170;
  space.live_at_peak.remaining_bytes = 110;
  space.live_at_peak.by_category = {{"activation", 170, 3}};
  space.timeline.points = {{0, 170, 140}};
  space.cumulative_current = 140;
  space.allocations = 1000;
  space.deallocations = 860;
  space.allocation_count = 20;
  space.deallocation_count = 9;
  folded.segments_by_name.resize(2);
  space.segments_by_name.resize(2);
  space.segments_by_name[0].allocations.sum = 900;
  space.segments_by_name[1].allocations.sum = 100;
  space.segments_by_name[0].deallocations.sum = 860;
  space.segments_by_name[0].allocation_count.sum = 20;
  space.segments_by_name[1].deallocation_count.sum = 9;
  CHECK(memprof::contradictions(folded, space) == sentences{});

  space.segments_by_name[1].allocations.sum = 101;
  CHECK(memprof::contradictions(folded, space) == sentences{"allocations is 1000, but the sum over segments_by_name is 1001"});
  space.segments_by_name[1].allocations.sum = 100;
  folded.segments[1].number = 1;  // then B comes right behind A
  CHECK_FALSE(memprof::contradictions(folded, space).empty());
}

TEST_CASE("contradictions: a memory holds what its spaces hold") {
  using memprof::memory_profile;
  CHECK(after_memory([](memory_profile&) {}).empty());
  CHECK(after_memory([](memory_profile& memory) { memory.cumulative_current = 101; }) ==
        sentences{"cumulative_current of the memory host is 101, but the sum of its spaces is 100"});
  CHECK(after_memory([](memory_profile& memory) { memory.spaces[1].bytes = 41; }) ==
        sentences{"cumulative_peak of the space pinned of the memory host is 40, less than what it held at the peak, 41",
                  "cumulative_peak of the memory host is 130, but the sum of what its spaces held is 141"});
  CHECK(after_memory([](memory_profile& memory) { memory.spaces[1].owner = "gone"; }) ==
        sentences{"the space 'gone' of the memory host is not in the list of spaces",
                  "cumulative_current of the memory host is 100, but the sum of its spaces is 90",
                  "the sum of the peaks of the spaces of the memory host is 110, less than cumulative_peak, 130"});
  CHECK(after_memory([](memory_profile& memory) { memory.live_at_peak.bytes = 129; }) ==
        sentences{"live_at_peak.bytes of the memory host is 129, but cumulative_peak is 130",
                  "the sum of live_at_peak.by_operation and its rest of the memory host is 130, but live_at_peak.bytes is 129",
                  "the sum of live_at_peak.by_category of the memory host is 130, but live_at_peak.bytes is 129"});
  CHECK(after_memory([](memory_profile& memory) { memory.peak_space = "dram"; }) ==
        sentences{"peak_space of the memory host is not one of its spaces: dram"});
  // At another moment than the peak of either.
  CHECK(after_memory([](memory_profile& memory) {
          memory.cumulative_peak = memory.live_at_peak.bytes = 90;
          memory.spaces = {{"cpu", 60, 1}, {"pinned", 30, 1}};
          memory.live_at_peak.by_operation[0].bytes = memory.live_at_peak.by_category[0].bytes = 90;
        }) == sentences{"cumulative_peak of the memory host is 90, less than cumulative_current, 100",
                        "cumulative_peak of the memory host is 90, less than that of one of its spaces, 110"});
}

TEST_CASE("contradictions: those of a memory are remarks on each of its spaces") {
  profile changed = shared_profile();
  changed.memories[0].cumulative_current = 101;
  const std::string expected =
      "the profile contradicts itself: cumulative_current of the memory host is 101, but the sum of its spaces is 100";
  for (const char* space : {"cpu", "pinned"}) {
    const std::vector<std::string> remarks = memprof::remarks_on(changed, changed.space(space));
    CHECK(std::count(remarks.begin(), remarks.end(), expected) == 1);
  }
}

}  // namespace memprof_tests::profile_contradictions
