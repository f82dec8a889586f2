#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../../stderr_of.hpp"

namespace memprof_tests::record_block_parts {

namespace {

using memprof::block_part;

const memprof::extend::event_sink sink;

}  // namespace

TEST_CASE("block parts: an allocation in parts is a block for each, with what lies between them, and ends as a whole") {
  const memprof::memory_space arena{"arena"};
  const std::vector<block_part> parts{{100, 200, {.name = "k", .shape = "[50]", .category = memprof::category::activation}},
                                      {300, 50, {.name = "v", .category = memprof::category::activation}},
                                      {350, 0, {.name = "empty"}}};
  auto capture = memprof::begin_capture();
  sink.allocate_parts(arena, 0x1000, 1000, parts);
  sink.allocate(arena, 0x1000 + 1000, 1);  // behind it
  memprof::snapshot("ALLOCATED");
  sink.deallocate_range(arena, 0x1000, 1000);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("arena");
  CHECK(space.cumulative_peak == 1001);
  CHECK(space.cumulative_current == 1);
  CHECK(space.allocation_count == 5);  // 100, 200, 50, 650 and 1 bytes
  CHECK(space.anomalies == memprof::space_anomalies{});
  const memprof::vector<memprof::live_block>& largest = space.live_at_peak.largest_blocks;
  REQUIRE(largest.size() == 5);
  CHECK(largest[0].bytes == 650);
  CHECK(largest[0].name == "rest of the block");
  CHECK(largest[1].name == "k");
  CHECK(largest[1].shape == "[50]");
  CHECK(largest[2].bytes == 100);
  CHECK(largest[3].name == "v");
}

TEST_CASE("block parts: parts that overlap or lie outside are left out, and the first one is named") {
  const memprof::memory_space arena{"arena"};
  const block_part parts[] = {{0, 60, {.name = "first"}},
                              {50, 10, {.name = "overlapping"}},
                              {90, 20, {.name = "too long"}},
                              {200, 1, {.name = "outside"}},
                              {60, SIZE_MAX, {.name = "endless"}}};
  auto capture = memprof::begin_capture();
  const std::string said = stderr_of([&] { sink.allocate_parts(arena, 0x1000, 100, parts); });
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("arena").cumulative_current == 100);
  CHECK(profile.space("arena").allocation_count == 2);  // 60 and 40 bytes
  CHECK(
      said ==
      "memprof: allocate_parts: the part 'overlapping' of 10 bytes at offset 50 is left out: parts must be in the order of their "
      "offsets, not overlap, and lie in the block of 100 bytes; this is said once\n");
}

TEST_CASE("block parts: without a capture nothing is recorded") {
  const memprof::memory_space arena{"arena"};
  sink.allocate_parts(arena, 0x1000, 100, std::vector<block_part>{{0, 10, {.name = "part"}}});
  auto capture = memprof::begin_capture();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.find_space("arena") == nullptr);
}

}  // namespace memprof_tests::record_block_parts
