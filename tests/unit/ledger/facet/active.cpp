#include <memprof/ledger/facet/streams.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::ledger_active_ledger {

using memprof::active_profile;
using memprof::active_usage;
using memprof::event_tally;
using memprof::space_profile;
using memprof::test::ledger_driver;
using memprof::test::where;

namespace {

constexpr where cuda{.space = 1};

[[nodiscard]] space_profile finished(ledger_driver& driver) {
  driver.snapshot("LAST");
  return driver.finished_profile().space("cuda:0");
}

}  // namespace

TEST_CASE("active: a freed block that streams still use is active, not live, until its deallocation is completed") {
  ledger_driver driver;
  driver.allocate_on_stream(0x1000, 500, "default", cuda);
  driver.allocate_on_stream(0x2000, 70, "default", cuda);
  driver.request_free(0x1000, "default", cuda, 500);
  driver.snapshot("FIRST");
  driver.allocate_on_stream(0x3000, 300, "default", cuda);
  driver.complete_free(0x1000, cuda, 500);
  const space_profile space = finished(driver);
  CHECK(space.cumulative_peak == 570);
  CHECK(space.cumulative_current == 370);
  CHECK(space.deallocations == 500);
  CHECK(space.active.peak == 870);
  CHECK(space.active.current == 370);
  CHECK(space.active.segments == memprof::vector<active_usage>{{570, 570}, {870, 370}});
  REQUIRE(space.active.segments_by_name.size() == 2);
  CHECK(space.active.segments_by_name[1].segment == "LAST");
  CHECK(space.active.segments_by_name[1].peak.greatest == 870);
  CHECK(space.active.unmatched_completions == event_tally{});
  CHECK(space.active.missing_completions == event_tally{});
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("active: a block whose free no stream delays is active as long as it is live") {
  ledger_driver driver;
  driver.allocate_on_stream(0x1000, 500, "default", cuda);
  driver.free_on_stream(0x1000, "default", cuda);
  driver.allocate_on_stream(0x2000, 70, "default", cuda);
  const space_profile space = finished(driver);
  CHECK(space.active.peak == space.cumulative_peak);
  CHECK(space.active.current == space.cumulative_current);
}

TEST_CASE("active: a space of which no block was driver on a stream has none") {
  ledger_driver driver;
  driver.allocate(0x1000, 500, cuda);
  driver.free(0x1000, 500, cuda);
  CHECK(finished(driver).active == active_profile{});
}

TEST_CASE("active: completions of blocks that were never seen freed are counted") {
  ledger_driver driver;
  driver.allocate_on_stream(0x1000, 500, "default", cuda);
  driver.complete_free(0x1000, cuda, 500);           // it is live
  driver.request_free(0x2000, "default", cuda, 60);  // of a block from before the capture
  driver.complete_free(0x2000, cuda, 60);
  const space_profile space = finished(driver);
  CHECK(space.cumulative_current == 500);
  CHECK(space.active.current == 500);
  CHECK(space.active.unmatched_completions == event_tally{2, 560});
  CHECK(space.anomalies.unmatched_frees == event_tally{1, 60});
}

TEST_CASE("active: where an address comes again, streams are done with what was freed there") {
  ledger_driver driver;
  driver.allocate_on_stream(0x1000, 500, "default", cuda);
  driver.request_free(0x1000, "default", cuda);
  driver.allocate_on_stream(0x1000, 200, "default", cuda);
  driver.request_free(0x1000, "default", cuda);
  driver.complete_free(0x1000, cuda);
  const space_profile space = finished(driver);
  CHECK(space.active.peak == 500);
  CHECK(space.active.current == 0);
  CHECK(space.active.missing_completions == event_tally{1, 500});
}

TEST_CASE("active: an allocation at the address of a live block replaces it") {
  ledger_driver driver;
  driver.allocate_on_stream(0x1000, 500, "default", cuda);
  driver.allocate_on_stream(0x1000, 200, "default", cuda);
  const space_profile space = finished(driver);
  CHECK(space.active.peak == 500);
  CHECK(space.active.current == 200);
}

}  // namespace memprof_tests::ledger_active_ledger
