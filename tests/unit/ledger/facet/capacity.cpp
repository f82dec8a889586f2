#include <unit/ledger/ledger_driver.hpp>
#include <unit/ledger/memory_left.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests::ledger_capacity {

using memprof::capacity_shortfall;
using memprof::category;
using memprof::live_block;
using memprof::owned_bytes;
using memprof::profile;
using memprof::test::ledger_driver;

namespace {

constexpr std::uint8_t cpu = 0;

/// Allocates within an operation.
void allocate_in(ledger_driver& driver, std::string_view operation, std::uint64_t address, std::uint64_t bytes) {
  driver.begin(operation);
  driver.allocate(address, bytes);
  driver.end(operation);
}

/// What a space of 1000 bytes lacks for `requested` bytes when the operations hold those, "a" first.
capacity_shortfall shortfall_beside(const std::vector<std::pair<std::string, std::uint64_t>>& held, std::uint64_t requested) {
  ledger_driver driver;
  CHECK(driver.events.limit(cpu, 1000));
  std::uint64_t address = 0;
  for (const auto& [operation, bytes] : held) allocate_in(driver, operation, address += 0x100, bytes);
  allocate_in(driver, "asking", 0xF000, requested);
  return driver.open_profile().space("cpu").first_shortfall;
}

}  // namespace

TEST_CASE("capacity: the first allocation beyond it is kept with what was free and who held the rest, and the run goes on") {
  ledger_driver driver{{.largest_blocks = 2}};
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.begin("model", 1, {.tag = ledger_driver::tag_of(category::parameter)});
  driver.allocate(0x100, 300);
  driver.allocate(0x200, 200);
  driver.end("model");
  driver.snapshot("MODEL_CREATION");
  driver.begin("forward");
  driver.begin("attention", 2);
  driver.allocate(0x300, 400);
  driver.allocate(0x400, 250, {.tag = ledger_driver::tag_of(category::activation)});  // 900 are live: 150 too many
  const std::int64_t then = static_cast<std::int64_t>(driver.next_stamp()) - 100;
  driver.end("attention", 2);
  driver.allocate(0x500, 5000);
  driver.end("forward");
  driver.free(0x300);
  driver.snapshot("FORWARD_PASS");

  const profile made = driver.finished_profile();
  const memprof::space_profile& space = made.space("cpu");
  CHECK(space.capacity == 1000);
  CHECK(space.cumulative_peak == 6150);
  const capacity_shortfall& full = space.first_shortfall;
  CHECK(full.requested == 250);
  CHECK(full.operation == "forward/attention");
  CHECK(full.category == category::activation);
  CHECK(full.segment == 1);
  CHECK(full.time_ns == then);
  CHECK(full.free == 100);
  CHECK(full.shortfall == 150);
  CHECK(full.holders_known);
  CHECK(full.held.bytes == 900);
  CHECK(full.held.blocks == 3);
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"model", 500, 2}, {"forward/attention", 400, 1}});
  CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"parameter", 500, 2}, {"other", 400, 1}});
  REQUIRE(full.held.largest_blocks.size() == 2);
  CHECK(full.held.largest_blocks[0] == live_block{0x300, 400, "forward/attention", category::other, "", "", ""});
  CHECK(full.held.largest_blocks[1] == live_block{0x100, 300, "model", category::parameter, "", "", ""});
  CHECK(full.remedy == memprof::vector<owned_bytes>{{"forward/attention", 400, 1}});
}

TEST_CASE("capacity: live bytes that just reach it are no shortfall") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.allocate(0x100, 600);
  driver.allocate(0x200, 400);
  driver.allocate(0x300, 0);
  CHECK(driver.open_profile().space("cpu").first_shortfall == capacity_shortfall{});
  driver.allocate(0x400, 1);
  CHECK(driver.open_profile().space("cpu").first_shortfall.requested == 1);
  CHECK(driver.open_profile().space("cpu").first_shortfall.free == 0);
}

TEST_CASE("capacity: the remedy is the smallest owner that alone held what was missing, of equal ones the first called") {
  using rows = memprof::vector<owned_bytes>;
  CHECK(shortfall_beside({{"a", 300}, {"b", 100}, {"c", 90}, {"d", 400}}, 210).remedy == rows{{"b", 100, 1}});  // 100 missing
  CHECK(shortfall_beside({{"a", 300}, {"b", 100}, {"c", 90}, {"d", 400}}, 211).remedy == rows{{"a", 300, 1}});
  CHECK(shortfall_beside({{"a", 200}, {"b", 300}, {"c", 200}}, 301).remedy == rows{{"a", 200, 1}});
}

TEST_CASE("capacity: if no owner alone held what was missing, the remedy is the fewest that together did") {
  using rows = memprof::vector<owned_bytes>;
  const capacity_shortfall full = shortfall_beside({{"a", 100}, {"b", 200}, {"c", 300}, {"d", 150}}, 750);  // 500 missing
  CHECK(full.shortfall == 500);
  CHECK(full.remedy == rows{{"c", 300, 1}, {"b", 200, 1}});
  CHECK(shortfall_beside({{"a", 100}, {"b", 200}, {"c", 300}, {"d", 150}}, 1000).remedy.size() == 4);  // all of it, just
}

TEST_CASE("capacity: nothing is a remedy for a request that exceeds the capacity itself") {
  CHECK(shortfall_beside({{"a", 100}, {"b", 200}}, 1001).remedy.empty());
  const capacity_shortfall alone = shortfall_beside({}, 1001);
  CHECK(alone.remedy.empty());
  CHECK(alone.free == 1000);
  CHECK(alone.held == memprof::live_set{});
}

TEST_CASE("capacity: the asking operation's other blocks are an owner like any other") {
  const capacity_shortfall full = shortfall_beside({{"a", 300}, {"asking", 400}, {"asking", 200}}, 500);
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"asking", 600, 2}, {"a", 300, 1}});
  CHECK(full.remedy == memprof::vector<owned_bytes>{{"asking", 600, 2}});
}

TEST_CASE("capacity: a block that the asked one replaces held nothing") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.allocate(0x100, 500);
  driver.allocate(0x200, 400);
  driver.allocate(0x100, 700);
  const capacity_shortfall full = driver.open_profile().space("cpu").first_shortfall;
  CHECK(full.free == 600);
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"", 400, 1}});
}

TEST_CASE("capacity: categories and names count as they were known at that moment") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.allocate(0x100, 500);
  driver.annotate(0x100, "before", category::parameter);
  driver.allocate(0x200, 400);
  driver.allocate(0x300, 200);
  driver.annotate(0x200, "after", category::gradient);
  driver.annotate(0x300, "asked", category::activation);
  const capacity_shortfall full = driver.open_profile().space("cpu").first_shortfall;
  CHECK(full.category == category::other);
  CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"parameter", 500, 1}, {"other", 400, 1}});
  CHECK(full.held.largest_blocks[0].name == "before");
  CHECK(full.held.largest_blocks[1].name.empty());
}

TEST_CASE("capacity: it is of one memory space, and one that never sees an event is not in the profile") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(1, 100));
  REQUIRE(driver.events.limit(2, 100));
  driver.allocate(0x100, 5000);
  driver.allocate(0x100, 101, {.space = 2});
  const profile made = driver.open_profile();
  CHECK(made.spaces.size() == 2);
  CHECK(made.space("cpu").capacity == 0);
  CHECK(made.space("cpu").first_shortfall == capacity_shortfall{});
  CHECK(made.space("dram").capacity == 100);
  CHECK(made.space("dram").first_shortfall.shortfall == 1);
}

TEST_CASE("capacity: 0 is none, and a space that had events already cannot get one") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 100));
  REQUIRE(driver.events.limit(cpu, 0));
  driver.allocate(0x100, 5000);
  CHECK(!driver.events.limit(cpu, 10));
  driver.allocate(0x200, 5000);
  CHECK(driver.open_profile().space("cpu").capacity == 0);
  CHECK(driver.open_profile().space("cpu").first_shortfall == capacity_shortfall{});
}

TEST_CASE("capacity: an shortfall behind the last segment of a finished profile is in no segment") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.allocate(0x100, 10);
  driver.snapshot("ALL");
  driver.allocate(0x200, 1000);
  CHECK(driver.finished_profile().space("cpu").first_shortfall.segment == -1);
  CHECK(driver.open_profile().space("cpu").first_shortfall.segment == 1);
}

TEST_CASE("capacity: what is kept of an shortfall is counted in the ledger's bytes, and does not grow with events") {
  ledger_driver driver;
  REQUIRE(driver.events.limit(cpu, 1000));
  driver.allocate(0x100, 900);
  const std::size_t before = driver.events.bytes();
  driver.allocate(0x200, 200);
  const std::size_t kept = driver.events.bytes();
  CHECK(kept >= before + 2 * 4096);  // a page for the owners and one for the largest blocks
  driver.free(0x200);
  for (int turn = 0; turn < 1000; ++turn) {
    driver.allocate(0x200, 200);
    driver.free(0x200);
  }
  CHECK(driver.events.bytes() <= kept + 64 * 1024);  // the timeline has grown
}

#if defined(__linux__)

namespace {

/// Tells an allocation while the system gives the process at most so many bytes more.
void allocate_with_memory_left(ledger_driver& driver, std::uint64_t bytes, rlim_t left) {
  memprof::test::with_memory_left(left,
                                  [&] { driver.allocate(0xF000, bytes, {.tag = ledger_driver::tag_of(category::activation)}); });
}

}  // namespace

TEST_CASE("capacity: without memory for who held the rest the profile says so, and has all sums") {
  // 64 KiB are enough for the owners, not for 4096 blocks of 32 bytes.
  for (const rlim_t left : {rlim_t{0}, rlim_t{64 * 1024}}) {
    ledger_driver driver{{.largest_blocks = 4096}};
    REQUIRE(driver.events.limit(cpu, 1000));
    allocate_in(driver, "a", 0x100, 900);
    driver.begin("b");
    allocate_with_memory_left(driver, 300, left);

    const capacity_shortfall full = driver.open_profile().space("cpu").first_shortfall;
    CHECK(!full.holders_known);
    CHECK(full.requested == 300);
    CHECK(full.operation == "b");
    CHECK(full.shortfall == 200);
    CHECK(full.held.bytes == 900);
    CHECK(full.held.remaining_bytes == 900);
    CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"other", 900, 1}});
    CHECK(full.held.by_operation.empty());
    CHECK(full.held.largest_blocks.empty());
    CHECK(full.remedy.empty());
  }
}

TEST_CASE("capacity: with just the memory for who held the rest it is known") {
  ledger_driver driver{{.largest_blocks = 4096}};
  REQUIRE(driver.events.limit(cpu, 1000));
  allocate_in(driver, "a", 0x100, 900);
  allocate_with_memory_left(driver, 300, rlim_t{256} * 1024);
  CHECK(driver.open_profile().space("cpu").first_shortfall.holders_known);
}

#endif

}  // namespace memprof_tests::ledger_capacity
