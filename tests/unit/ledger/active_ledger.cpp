#include <memprof/ledger/active_ledger.hpp>
#include <unit/ledger/told_ledger.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

using memprof::active_profile;
using memprof::active_usage;
using memprof::event_tally;
using memprof::space_profile;
using memprof::test::told_ledger;
using memprof::test::where;

namespace {

constexpr where cuda{.space = 1};

[[nodiscard]] space_profile finished(told_ledger& told) {
  told.snapshot("LAST");
  return told.finished_profile().space("cuda:0");
}

}  // namespace

TEST_CASE("active: a freed block that streams still use is active, not live, until its deallocation is completed") {
  told_ledger told;
  told.allocate_on_stream(0x1000, 500, "default", cuda);
  told.allocate_on_stream(0x2000, 70, "default", cuda);
  told.request_free(0x1000, "default", cuda, 500);
  told.snapshot("FIRST");
  told.allocate_on_stream(0x3000, 300, "default", cuda);
  told.complete_free(0x1000, cuda, 500);
  const space_profile space = finished(told);
  CHECK(space.cumulative_peak == 570);
  CHECK(space.cumulative_current == 370);
  CHECK(space.deallocations == 500);
  CHECK(space.active.peak == 870);
  CHECK(space.active.current == 370);
  CHECK(space.active.segments == std::vector<active_usage>{{570, 570}, {870, 370}});
  REQUIRE(space.active.segments_by_name.size() == 2);
  CHECK(space.active.segments_by_name[1].segment == "LAST");
  CHECK(space.active.segments_by_name[1].peak.greatest == 870);
  CHECK(space.active.unmatched_completions == event_tally{});
  CHECK(space.active.missing_completions == event_tally{});
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("active: a block whose free no stream delays is active as long as it is live") {
  told_ledger told;
  told.allocate_on_stream(0x1000, 500, "default", cuda);
  told.free_on_stream(0x1000, "default", cuda);
  told.allocate_on_stream(0x2000, 70, "default", cuda);
  const space_profile space = finished(told);
  CHECK(space.active.peak == space.cumulative_peak);
  CHECK(space.active.current == space.cumulative_current);
}

TEST_CASE("active: a space of which no block was told on a stream has none") {
  told_ledger told;
  told.allocate(0x1000, 500, cuda);
  told.free(0x1000, 500, cuda);
  CHECK(finished(told).active == active_profile{});
}

TEST_CASE("active: completions of blocks that were never seen freed are counted") {
  told_ledger told;
  told.allocate_on_stream(0x1000, 500, "default", cuda);
  told.complete_free(0x1000, cuda, 500);           // it is live
  told.request_free(0x2000, "default", cuda, 60);  // of a block from before the capture
  told.complete_free(0x2000, cuda, 60);
  const space_profile space = finished(told);
  CHECK(space.cumulative_current == 500);
  CHECK(space.active.current == 500);
  CHECK(space.active.unmatched_completions == event_tally{2, 560});
  CHECK(space.anomalies.unmatched_frees == event_tally{1, 60});
}

TEST_CASE("active: where an address comes again, streams are done with what was freed there") {
  told_ledger told;
  told.allocate_on_stream(0x1000, 500, "default", cuda);
  told.request_free(0x1000, "default", cuda);
  told.allocate_on_stream(0x1000, 200, "default", cuda);
  told.request_free(0x1000, "default", cuda);
  told.complete_free(0x1000, cuda);
  const space_profile space = finished(told);
  CHECK(space.active.peak == 500);
  CHECK(space.active.current == 0);
  CHECK(space.active.missing_completions == event_tally{1, 500});
}

TEST_CASE("active: an allocation at the address of a live block replaces it") {
  told_ledger told;
  told.allocate_on_stream(0x1000, 500, "default", cuda);
  told.allocate_on_stream(0x1000, 200, "default", cuda);
  const space_profile space = finished(told);
  CHECK(space.active.peak == 500);
  CHECK(space.active.current == 200);
}
