#include <memprof/ledger/facet/reserved.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::ledger_reserved_ledger {

using memprof::event_tally;
using memprof::profile;
using memprof::reserved_profile;
using memprof::reserved_usage;
using memprof::test::ledger_driver;

namespace {

constexpr std::uint64_t mib = 1 << 20;

[[nodiscard]] reserved_profile finished(ledger_driver& driver) {
  driver.snapshot("LAST");
  return driver.finished_profile().space("cpu").reserved;
}

}  // namespace

TEST_CASE("reserved: what an allocator takes and gives back is driver for each segment, beside what is live") {
  ledger_driver driver;
  driver.reserve(0x10000000, 20 * mib);
  driver.reserve(0x20000000, 2 * mib);
  driver.release(0x10000000, 20 * mib);
  driver.allocate(0x20000000, 512);
  driver.snapshot("FIRST");
  driver.reserve(0x30000000, 4 * mib);
  driver.snapshot("LAST");
  const profile made = driver.finished_profile();
  const reserved_profile& reserved = made.space("cpu").reserved;
  CHECK(reserved.peak == 22 * mib);
  CHECK(reserved.current == 6 * mib);
  CHECK(reserved.segments == memprof::vector<reserved_usage>{{22 * mib, 2 * mib}, {6 * mib, 6 * mib}});
  CHECK(made.space("cpu").cumulative_peak == 512);
  CHECK(made.exact);
}

TEST_CASE("reserved: a space whose allocator driver nothing has no rows") {
  ledger_driver driver;
  driver.allocate(64, 8);
  CHECK(finished(driver) == reserved_profile{});
}

TEST_CASE("reserved: pages of an expandable segment come and go in other pieces than they were taken") {
  ledger_driver driver;
  driver.reserve(20 * mib, 40 * mib);
  driver.reserve(60 * mib, 20 * mib);
  driver.release(40 * mib, 30 * mib);  // half of the first, and the beginning of the second
  driver.release(70 * mib);            // what is left of the second
  const reserved_profile reserved = finished(driver);
  CHECK(reserved.peak == 60 * mib);
  CHECK(reserved.current == 20 * mib);
  CHECK(reserved.unmatched_releases == event_tally{});
}

TEST_CASE("reserved: a release of what was taken before the capture is counted and nothing gets negative") {
  ledger_driver driver;
  driver.release(0x1000, 4096);
  driver.release(0x5000);
  driver.reserve(0x10000, 1000);
  driver.release(0x10000 + 500, 1500);  // 1,000 bytes of it are not held
  const reserved_profile reserved = finished(driver);
  CHECK(reserved.current == 500);
  CHECK(reserved.unmatched_releases == event_tally{3, 4096 + 1000});
}

TEST_CASE("reserved: a release without a size that meets no beginning of a range changes nothing") {
  ledger_driver driver;
  driver.reserve(1000, 100);
  driver.release(1050);
  driver.release(1000);
  const reserved_profile reserved = finished(driver);
  CHECK(reserved.current == 0);
  CHECK(reserved.unmatched_releases == event_tally{1, 0});
}

TEST_CASE("reserved: a range at an address that is held replaces the part that it covers") {
  ledger_driver driver;
  driver.reserve(1000, 100);
  driver.reserve(1050, 100);
  const reserved_profile reserved = finished(driver);
  CHECK(reserved.peak == 150);
  CHECK(reserved.replaced_reservations == event_tally{1, 50});
}

TEST_CASE("reserved: impossible ranges are rejected and change nothing") {
  ledger_driver driver;
  driver.reserve(64, 0);
  driver.reserve(~std::uint64_t{0} - 7, 16);
  driver.reserve(0, std::uint64_t{1} << 63);
  CHECK(finished(driver) == reserved_profile{});
  CHECK(driver.events.rejected_events() == 3);
}

}  // namespace memprof_tests::ledger_reserved_ledger
