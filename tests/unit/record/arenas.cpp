#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::record_arenas {

namespace {

[[nodiscard]] const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

TEST_CASE("arenas: a reset ends the blocks that begin in the range, and no other") {
  auto capture = memprof::begin_capture();
  const memprof::extend::event_sink sink;
  const memprof::memory_space arena{"arena"};
  const memprof::memory_space other{"beside the arena"};
  {
    auto scope = memprof::track_operation("fill");
    for (std::uint64_t index = 0; index < 10; ++index) sink.allocate(arena, at(0x1000 + 0x100 * index), 0x100);
    sink.allocate(other, at(0x1000), 7);
  }
  memprof::snapshot("FILL");
  sink.deallocate_range(arena, at(0x1200), 0x300);  // the third, fourth and fifth block
  sink.deallocate_range(arena, at(0x1280), 0x80);   // nothing begins there
  sink.deallocate_range(arena, at(0x1000), 0);
  memprof::snapshot("PART");
  sink.deallocate_all(arena);
  sink.deallocate_all(arena);
  memprof::snapshot("ALL");
  sink.allocate(arena, at(0x1000), 1);
  capture.end();

  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("arena");
  REQUIRE(space.segments.size() == 4);
  CHECK(space.segments[0].cumulative_current == 10 * 0x100);
  CHECK(space.segments[1].deallocations == 3 * 0x100);
  CHECK(space.segments[1].deallocation_count == 3);
  CHECK(space.segments[1].cumulative_current == 7 * 0x100);
  CHECK(space.segments[2].deallocations == 7 * 0x100);
  CHECK(space.segments[2].cumulative_current == 0);
  CHECK(space.cumulative_current == 1);
  CHECK(space.cumulative_peak == 10 * 0x100);
  CHECK(space.anomalies == memprof::space_anomalies{});
  CHECK(profile.space("beside the arena").cumulative_current == 7);
  CHECK(profile.find_operation("fill")->usage.at(0).live == 0);
}

TEST_CASE("arenas: a range at the end of the addresses does not wrap around") {
  auto capture = memprof::begin_capture();
  const memprof::extend::event_sink sink;
  const memprof::memory_space arena{"arena"};
  sink.allocate(arena, at(0x1000), 16);
  sink.allocate(arena, at(UINT64_MAX - 15), 16);
  sink.deallocate_range(arena, at(UINT64_MAX - 31), SIZE_MAX);
  capture.end();
  CHECK(capture.profile().space("arena").cumulative_current == 16);
  CHECK(capture.profile().space("arena").deallocation_count == 1);
}

}  // namespace memprof_tests::record_arenas
