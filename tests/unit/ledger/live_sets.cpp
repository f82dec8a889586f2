#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace memprof_tests::ledger_live_sets {

using memprof::live_block;
using memprof::live_set;
using memprof::owned_bytes;
using memprof::profile;
using memprof::test::ledger_driver;

namespace {

std::vector<std::uint64_t> addresses_of(const live_set& set) {
  std::vector<std::uint64_t> addresses;
  for (const live_block& shown : set.largest_blocks) addresses.push_back(shown.address);
  return addresses;
}

}  // namespace

TEST_CASE("live sets: the largest blocks of a peak are listed whether they are freed later or not") {
  ledger_driver driver{{.largest_blocks = 3}};
  driver.allocate(0x100, 10);
  driver.allocate(0x200, 40);
  driver.allocate(0x300, 30);
  driver.allocate(0x400, 20);  // the peak
  driver.free(0x300);
  driver.allocate(0x500, 1);
  driver.free(0x500);
  driver.snapshot("A");
  driver.free(0x200);
  driver.snapshot("B");
  const profile made = driver.finished_profile();
  CHECK(addresses_of(made.space("cpu").segments[0].live_at_peak) == std::vector<std::uint64_t>{0x200, 0x300, 0x400});
  // B never rose above its start, so its peak is its start: what was live then.
  CHECK(addresses_of(made.space("cpu").segments[1].live_at_peak) == std::vector<std::uint64_t>{0x200, 0x400, 0x100});
  CHECK(made.space("cpu").live_at_peak == made.space("cpu").segments[0].live_at_peak);
}

TEST_CASE("live sets: equally large blocks stand in the order of their allocation") {
  ledger_driver driver{{.largest_blocks = 3}};
  for (const std::uint64_t address : {0x500U, 0x100U, 0x400U, 0x200U, 0x300U}) driver.allocate(address, 8);
  driver.free(0x100);
  driver.snapshot("A");
  CHECK(addresses_of(driver.finished_profile().space("cpu").live_at_peak) == std::vector<std::uint64_t>{0x500, 0x100, 0x400});
}

TEST_CASE("live sets: a block of no bytes that comes after the peak is not part of it") {
  ledger_driver driver;
  driver.allocate(0x100, 8);
  driver.allocate(0x200, 0);
  driver.snapshot("A");
  const live_set set = driver.finished_profile().space("cpu").live_at_peak;
  CHECK(set.blocks == 1);
  CHECK(addresses_of(set) == std::vector<std::uint64_t>{0x100});
}

TEST_CASE("live sets: a block that comes right after the peak and goes again is not part of it") {
  ledger_driver driver;
  driver.allocate(0x100, 100);
  driver.allocate(0x200, 50);  // the peak
  driver.free(0x100);
  driver.allocate(0x300, 40);
  driver.free(0x300);
  driver.snapshot("A");
  CHECK(addresses_of(driver.finished_profile().space("cpu").live_at_peak) == std::vector<std::uint64_t>{0x100, 0x200});
}

TEST_CASE("live sets: of equal peaks the first segment's is that of the capture") {
  ledger_driver driver;
  driver.allocate(0x100, 100);
  driver.snapshot("A");
  driver.free(0x100);
  driver.allocate(0x200, 100);
  driver.snapshot("B");
  const profile made = driver.finished_profile();
  CHECK(made.space("cpu").peak_segment == 0);
  CHECK(addresses_of(made.space("cpu").live_at_peak) == std::vector<std::uint64_t>{0x100});
}

TEST_CASE("live sets: what is freed leaves its category") {
  ledger_driver driver;
  driver.allocate(0x100, 100, {.tag = driver.tag_of(memprof::category::parameter)});
  driver.snapshot("A");
  driver.free(0x100);
  driver.allocate(0x200, 150, {.tag = driver.tag_of(memprof::category::activation)});
  driver.snapshot("B");
  const live_set set = driver.finished_profile().space("cpu").segments[1].live_at_peak;
  REQUIRE(set.by_category.size() == 1);
  CHECK(set.by_category[0] == owned_bytes{"activation", 150, 1});
}

TEST_CASE("live sets: owners beyond the limit are summed up, but the overall peak lists all of them") {
  ledger_driver driver{{.owners_per_segment = 2}};
  std::uint64_t bytes = 1;
  for (const char* const name : {"a", "b", "c", "d"}) {
    driver.begin(name);
    driver.allocate(bytes * 4096, bytes);
    driver.end(name);
    bytes *= 2;
  }
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const live_set& kept = made.space("cpu").segments[0].live_at_peak;
  CHECK(kept.by_operation == memprof::vector<owned_bytes>{{"d", 8, 1}, {"c", 4, 1}});
  CHECK(kept.remaining_bytes == 3);
  CHECK(kept.remaining_operations == 2);
  const live_set& overall = made.space("cpu").live_at_peak;
  CHECK(overall.by_operation == memprof::vector<owned_bytes>{{"d", 8, 1}, {"c", 4, 1}, {"b", 2, 1}, {"a", 1, 1}});
  CHECK(overall.remaining_operations == 0);
}

TEST_CASE("live sets: an owner of many small blocks has the category of most of its bytes, at the overall peak") {
  ledger_driver driver{{.largest_blocks = 1}};
  const std::uint16_t state = driver.tag_of(memprof::category::optimizer_state);
  driver.begin("step");
  for (std::uint64_t block = 1; block <= 4; ++block)
    driver.allocate(block * 4096, 100, {.tag = block < 4 ? state : std::uint16_t{0}});
  driver.end("step");
  driver.begin("forward");
  driver.allocate(0x10000, 150, {.tag = state});
  driver.allocate(0x20000, 150);  // half of the bytes are not most
  driver.end("forward");
  SECTION("as long as they are live") {
    driver.snapshot("A");
    driver.free(0x10000);
    driver.snapshot("B");
    const profile made = driver.finished_profile();
    const memprof::vector<owned_bytes> expected{{"step", 400, 4, "optimizer_state"}, {"forward", 300, 2}};
    CHECK(made.space("cpu").live_at_peak.by_operation == expected);
    CHECK(made.space("cpu").segments[1].live_at_peak.by_operation[0].category.empty());
  }
  SECTION("in the last segment, too") {
    driver.snapshot("A");
    driver.allocate(0x30000, 1);
    driver.snapshot("B");
    driver.free(0x30000);
    const profile made = driver.finished_profile();
    CHECK(made.space("cpu").live_at_peak.by_operation[0] == owned_bytes{"step", 400, 4, "optimizer_state"});
  }
  SECTION("and of those that are freed in the same segment") {
    driver.free(4096);
    driver.free(8192);
    driver.snapshot("A");
    const profile made = driver.finished_profile();
    CHECK(made.space("cpu").live_at_peak.by_operation[0] == owned_bytes{"step", 400, 4, "optimizer_state"});
  }
  SECTION("or in a later one, before a greater peak of another") {
    driver.snapshot("A");
    for (std::uint64_t block = 1; block <= 4; ++block) driver.free(block * 4096);
    driver.snapshot("B");
    const profile made = driver.finished_profile();
    CHECK(made.space("cpu").live_at_peak.by_operation[0] == owned_bytes{"step", 400, 4, "optimizer_state"});
  }
  SECTION("but not of those that were freed before a greater peak") {
    for (std::uint64_t block = 1; block <= 3; ++block) driver.free(block * 4096);
    driver.begin("step");
    driver.allocate(0x40000, 1000);
    driver.end("step");
    driver.snapshot("A");
    const profile made = driver.finished_profile();
    CHECK(made.space("cpu").live_at_peak.by_operation[0] == owned_bytes{"step", 1100, 2, ""});
  }
  SECTION("nor of those that came after the peak") {
    for (std::uint64_t block = 1; block <= 3; ++block) driver.free(block * 4096);
    driver.begin("step");
    driver.allocate(4096, 300, {.tag = driver.tag_of(memprof::category::temporary)});
    driver.end("step");
    driver.snapshot("A");
    const profile made = driver.finished_profile();
    CHECK(made.space("cpu").live_at_peak.by_operation[0] == owned_bytes{"step", 400, 4, "optimizer_state"});
  }
}

TEST_CASE("live sets: nothing is kept where no blocks and no owners were asked for, and the totals are the same") {
  ledger_driver driver{{.largest_blocks = 0, .owners_per_segment = 0}};
  driver.allocate(0x100, 8);
  driver.free(0x100);
  driver.snapshot("ALL");
  const live_set set = driver.finished_profile().space("cpu").segments[0].live_at_peak;
  CHECK(set.bytes == 8);
  CHECK(set.blocks == 1);
  CHECK(set.by_operation.empty());
  CHECK(set.remaining_bytes == 8);
  CHECK(set.remaining_operations == 1);
  CHECK(set.largest_blocks.empty());
  CHECK(set.by_category == memprof::vector<owned_bytes>{{"other", 8, 1}});
}

}  // namespace memprof_tests::ledger_live_sets
