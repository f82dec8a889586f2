#include <memprof/ledger/facet/streams.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

namespace memprof_tests::ledger_stream_ledger {

using memprof::event_tally;
using memprof::out_of_memory_failure;
using memprof::profile;
using memprof::stream_usage;
using memprof::extend::event_kind;
using memprof::test::ledger_driver;
using memprof::test::where;

namespace {

constexpr std::int64_t mib = 1 << 20;

[[nodiscard]] memprof::space_profile finished(ledger_driver& driver) {
  driver.snapshot("LAST");
  return driver.finished_profile().space("cuda:0");
}

constexpr where cuda{.space = 1};

}  // namespace

TEST_CASE("streams: each stream and pool has a row with what was live and reserved for it, most reserved first") {
  ledger_driver driver;
  driver.reserve(0x10000000, 2 * mib, cuda, "default\x1f");
  driver.reserve(0x20000000, 20 * mib, cuda,
                 "0x10\x1f"
                 "0:1");
  driver.allocate_on_stream(0x10000000, 512, "default\x1f", cuda);
  driver.allocate_on_stream(0x20000000, 1000,
                            "0x10\x1f"
                            "0:1",
                            cuda);
  driver.allocate_on_stream(0x20000400, 3000,
                            "0x10\x1f"
                            "0:1",
                            cuda);
  driver.free_on_stream(0x20000000,
                        "0x10\x1f"
                        "0:1",
                        cuda);
  driver.release(0x10000000, 2 * mib, cuda, "default\x1f");
  driver.allocate(0x30000000, 64, cuda);
  const memprof::space_profile space = finished(driver);
  CHECK(space.streams == memprof::vector<stream_usage>{{"0x10", "0:1", 4000, 3000, 2, 20 * mib, 20 * mib},
                                                       {"default", "", 512, 512, 1, 2 * mib, 0}});
  CHECK(space.cumulative_peak == 512 + 4000);
  CHECK(space.cumulative_current == 512 + 3000 + 64);
  CHECK(space.reserved.peak == 22 * mib);
}

TEST_CASE("streams: a space of which none was driver has no rows") {
  ledger_driver driver;
  driver.allocate(64, 8, cuda);
  driver.reserve(0, mib, cuda);
  CHECK(finished(driver).streams.empty());
}

TEST_CASE("streams: a free of a block from before the capture changes no row") {
  ledger_driver driver;
  driver.allocate_on_stream(64, 8, "default", cuda);
  driver.free_on_stream(128, "default", cuda, 100);
  const memprof::space_profile space = finished(driver);
  CHECK(space.streams == memprof::vector<stream_usage>{{"default", "", 8, 8, 1, 0, 0}});
  CHECK(space.anomalies.unmatched_frees == event_tally{1, 100});
}

TEST_CASE("streams: a free that names another stream than the allocation makes no row negative") {
  ledger_driver driver;
  driver.allocate_on_stream(64, 8, "first", cuda);
  driver.allocate_on_stream(128, 4, "second", cuda);
  driver.free_on_stream(64, "second", cuda);
  const memprof::space_profile space = finished(driver);
  CHECK(space.cumulative_current == 4);
  CHECK(space.streams == memprof::vector<stream_usage>{{"first", "", 8, 8, 1, 0, 0}, {"second", "", 4, 0, 1, 0, 0}});
}

TEST_CASE("streams: those beyond the first 64 share a row that says so, and no byte is lost") {
  ledger_driver driver;
  std::int64_t expected = 0;
  for (std::uint64_t stream = 1; stream <= 100; ++stream) {
    driver.allocate_on_stream(stream * 4096, 1000 - stream, std::to_string(stream), cuda);
    expected += static_cast<std::int64_t>(1000 - stream);
  }
  driver.free_on_stream(100 * 4096, "100", cuda);
  expected -= 900;
  const memprof::space_profile space = finished(driver);
  REQUIRE(space.streams.size() == 65);
  CHECK(space.streams[0] == stream_usage{"1", "", 999, 999, 1, 0, 0});
  CHECK(space.streams[63] == stream_usage{"64", "", 936, 936, 1, 0, 0});
  // 936 + ... + 900 for streams 65 to 100 is 36 numbers whose mean is 917.5.
  CHECK(space.streams[64] == stream_usage{"other streams", "", 36 * 1835 / 2, 36 * 1835 / 2 - 900, 36, 0, 0, true});
  std::int64_t sum = 0;
  for (const stream_usage& row : space.streams) sum += row.cumulative_current;
  CHECK(sum == expected);
  CHECK(space.cumulative_current == expected);
}

TEST_CASE("failed allocations: each tells who asked, how much, and what was free, live and reserved then") {
  ledger_driver driver;
  driver.reserve(0x10000000, 20 * mib, cuda);
  driver.allocate(0x10000000, 5000, cuda);
  driver.snapshot("FIRST");
  driver.begin("forward");
  driver.begin("matmul", 2);
  driver.out_of_memory(80 * mib, 3 * mib, cuda);
  driver.end("matmul", 2);
  driver.end("forward");
  driver.free(0x10000000, 5000, cuda);
  const memprof::space_profile space = finished(driver);
  REQUIRE(space.out_of_memory.size() == 1);
  // The fifth event: stamps are 100 for each.
  CHECK(space.out_of_memory[0] == out_of_memory_failure{80 * mib, 3 * mib, 5000, 20 * mib, "forward/matmul", 1, 500, 1});
  CHECK(space.further_out_of_memory == event_tally{});
  CHECK(space.cumulative_peak == 5000);
}

TEST_CASE("failed allocations: those after the first 32 are counted, and impossible ones rejected") {
  ledger_driver driver;
  for (std::uint64_t count = 1; count <= 40; ++count) driver.out_of_memory(count, 0, cuda);
  driver.out_of_memory(std::uint64_t{1} << 63, 0, cuda);
  driver.out_of_memory(1, std::uint64_t{1} << 63, cuda);
  const memprof::space_profile space = finished(driver);
  REQUIRE(space.out_of_memory.size() == 32);
  CHECK(space.out_of_memory.back().requested == 32);
  CHECK(space.further_out_of_memory == event_tally{8, 33 + 34 + 35 + 36 + 37 + 38 + 39 + 40});
  CHECK(driver.events.rejected_events() == 2);
}

}  // namespace memprof_tests::ledger_stream_ledger
