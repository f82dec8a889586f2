#include <unit/ledger/ledger_driver.hpp>
#include <unit/ledger/memory_left.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof_tests::ledger_core_capacity {

using memprof::capacity_shortfall;
using memprof::category;
using memprof::live_block;
using memprof::owned_bytes;
using memprof::profile;
using memprof::space_profile;
using memprof::extend::address_on_cores;
using memprof::extend::buffer_kind;
using memprof::extend::core_range;
using memprof::test::ledger_driver;
using memprof::test::where;

namespace {

constexpr std::uint8_t l1 = 3;
constexpr core_range sixteen_cores{0, 0, 3, 3};

/// A ledger of cores with 1000 bytes each.
class cores_driver : public ledger_driver {
 public:
  explicit cores_driver(const memprof::extend::ledger_options& options = {}) : ledger_driver{options} {
    REQUIRE(events.limit(l1, 1000, true));
  }

  void buffer(std::uint64_t address, std::uint64_t bytes, core_range cores = sixteen_cores) {
    allocate_on_cores(address, bytes, cores, buffer_kind::buffer, {.space = l1});
  }
  void circular_buffer(std::uint64_t address, std::uint64_t bytes, core_range cores, where at = {.space = l1}) {
    allocate_on_cores(address, bytes, cores, buffer_kind::circular_buffer, at);
  }
  /// A buffer on all cores, by an operation.
  void buffer_of(std::string_view operation, std::uint64_t address, std::uint64_t bytes) {
    begin(operation);
    buffer(address, bytes);
    end(operation);
  }
  [[nodiscard]] capacity_shortfall shortfall() { return open_profile().space("l1").first_shortfall; }
};

}  // namespace

TEST_CASE("core capacity: the first block with which a core holds more is kept in numbers of the fullest of its cores") {
  cores_driver driver{{.largest_blocks = 2}};
  driver.begin("model", 1, {.tag = ledger_driver::tag_of(category::parameter)});
  driver.buffer(0x1000, 300);
  driver.end("model");
  driver.snapshot("MODEL_CREATION");
  driver.begin("forward");
  driver.circular_buffer(0x2000, 200, {1, 1, 2, 2});
  driver.begin("attention", 2);
  driver.buffer(0x3000, 150, {2, 1, 2, 1});  // now core 2-1 has 650, those around it 500, the others 300
  driver.buffer(0x3000, 500, {3, 3, 3, 3});  // but 3-3, which has 800
  const auto tag = static_cast<std::uint16_t>(ledger_driver::tag_of(category::temporary));
  driver.circular_buffer(0x4000, 400, {0, 0, 2, 2}, {.space = l1, .tag = tag});
  const auto then = static_cast<std::int64_t>(driver.next_stamp()) - 100;
  driver.end("attention", 2);
  driver.buffer(0x5000, 5000);
  driver.end("forward");

  const space_profile space = driver.open_profile().space("l1");
  CHECK(space.capacity == 1000);
  CHECK(space.capacity_is_per_core);
  CHECK(space.cores.peaks.total == 5000 + 1050);
  CHECK(space.cumulative_peak == 16 * 300 + 4 * 200 + 150 + 500 + 9 * 400 + 16 * 5000);
  const capacity_shortfall& full = space.first_shortfall;
  CHECK(full.core == "2-1");
  CHECK(full.requested == 400);
  CHECK(full.operation == "forward/attention");
  CHECK(full.category == category::temporary);
  CHECK(full.segment == 1);
  CHECK(full.time_ns == then);
  CHECK(full.free == 350);
  CHECK(full.shortfall == 50);
  CHECK(full.holders_known);
  CHECK(full.held.bytes == 650);
  CHECK(full.held.blocks == 3);
  CHECK(full.held.by_operation ==
        memprof::vector<owned_bytes>{{"model", 300, 1}, {"forward", 200, 1}, {"forward/attention", 150, 1}});
  CHECK(full.held.remaining_bytes == 0);
  CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"other", 350, 2}, {"parameter", 300, 1}});
  REQUIRE(full.held.largest_blocks.size() == 2);
  CHECK(full.held.largest_blocks[0] ==
        live_block{address_on_cores(0x1000, sixteen_cores), 300, "model", category::parameter, "", "", ""});
  CHECK(full.held.largest_blocks[1] ==
        live_block{address_on_cores(0x2000, {1, 1, 2, 2}), 200, "forward", category::other, "", "", ""});
  CHECK(full.remedy == memprof::vector<owned_bytes>{{"forward/attention", 150, 1}});
}

TEST_CASE("core capacity: the bytes of all cores together, or on disjoint cores, are not compared with it") {
  cores_driver driver;
  driver.buffer(0x1000, 900);
  driver.circular_buffer(0x2000, 100, {0, 0, 0, 0});
  driver.circular_buffer(0x2000, 100, {1, 0, 3, 0});
  driver.circular_buffer(0x3000, 0, sixteen_cores);
  CHECK(driver.shortfall() == capacity_shortfall{});
  driver.buffer(0x4000, 1, {1, 0, 1, 0});
  CHECK(driver.shortfall().requested == 1);
  CHECK(driver.shortfall().core == "1-0");
  CHECK(driver.shortfall().free == 0);
}

TEST_CASE("core capacity: of equally full cores of the block the first is driver, row after row, whatever lies on others") {
  cores_driver driver;
  driver.buffer(0x1000, 1000, {0, 0, 3, 0});
  driver.buffer(0x2000, 600, {1, 2, 1, 2});
  driver.buffer(0x3000, 600, {3, 1, 3, 1});
  driver.buffer(0x4000, 500, {0, 1, 3, 3});
  CHECK(driver.shortfall().core == "3-1");
}

TEST_CASE("core capacity: what was freed, replaced or ended by the next program holds nothing") {
  cores_driver driver;
  driver.buffer(0x1000, 800);
  driver.free_on_cores(0x1000, sixteen_cores, 0, {.space = l1});
  driver.circular_buffer(0x2000, 800, sixteen_cores);
  driver.free_circular_buffers({0, 0, 0, 0}, {.space = l1});
  driver.buffer(0x3000, 800);
  driver.buffer(0x3000, 700);  // replaces it
  driver.buffer(0x4000, 400);
  const capacity_shortfall full = driver.shortfall();
  CHECK(full.requested == 400);
  CHECK(full.free == 300);
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"", 700, 1}});
}

TEST_CASE("core capacity: owners are summed up and sorted as those of a whole space, and so is the remedy") {
  cores_driver driver;
  driver.buffer_of("a", 0x1000, 100);
  driver.buffer_of("b", 0x2000, 300);
  driver.buffer_of("c", 0x3000, 100);
  driver.buffer_of("a", 0x4000, 200);
  driver.buffer_of("d", 0x5000, 600);  // 300 missing: as much as a holds and as b holds, of which a was called first
  const capacity_shortfall full = driver.shortfall();
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"a", 300, 2}, {"b", 300, 1}, {"c", 100, 1}});
  CHECK(full.remedy == memprof::vector<owned_bytes>{{"a", 300, 2}});
}

TEST_CASE("core capacity: nothing is a remedy for a block that alone is larger than a core") {
  cores_driver driver;
  driver.buffer(0x1000, 1001, {5, 6, 5, 6});
  const capacity_shortfall full = driver.shortfall();
  CHECK(full.core == "5-6");
  CHECK(full.free == 1000);
  CHECK(full.held == memprof::live_set{});
  CHECK(full.remedy.empty());
}

TEST_CASE("core capacity: categories and names count as they were known at that moment") {
  cores_driver driver;
  driver.buffer(0x1000, 500);
  driver.annotate(address_on_cores(0x1000, sixteen_cores), "before", category::parameter, {.space = l1});
  driver.buffer(0x2000, 400);
  driver.buffer(0x3000, 200);
  driver.annotate(address_on_cores(0x2000, sixteen_cores), "after", category::gradient, {.space = l1});
  driver.annotate(address_on_cores(0x3000, sixteen_cores), "asked", category::activation, {.space = l1});
  const capacity_shortfall full = driver.shortfall();
  CHECK(full.category == category::other);
  CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"parameter", 500, 1}, {"other", 400, 1}});
  CHECK(full.held.largest_blocks[0].name == "before");
  CHECK(full.held.largest_blocks[1].name.empty());
}

TEST_CASE("core capacity: blocks without cores do not count, and a capacity of the whole space counts all cores") {
  cores_driver driver;
  driver.allocate(0x100, 5000, {.space = l1});
  driver.buffer(0x1000, 1000);
  CHECK(driver.shortfall() == capacity_shortfall{});

  ledger_driver whole;
  REQUIRE(whole.events.limit(l1, 1000));
  whole.allocate_on_cores(0x1000, 100, {0, 0, 9, 0}, buffer_kind::buffer, {.space = l1});
  whole.allocate_on_cores(0x2000, 1, {0, 0, 1, 0}, buffer_kind::buffer, {.space = l1});
  const space_profile space = whole.open_profile().space("l1");
  CHECK(!space.capacity_is_per_core);
  CHECK(space.first_shortfall.core.empty());
  CHECK(space.first_shortfall.requested == 2);
  CHECK(space.first_shortfall.held.bytes == 1000);
}

// No `event_sink` sends that: the keys of blocks on cores are no addresses.
TEST_CASE("core capacity: what an ordinary event took out of the space still lies on the core, but nobody owns it") {
  cores_driver driver;
  driver.buffer_of("a", 0x1000, 300);
  driver.buffer_of("b", 0x2000, 200);
  driver.buffer_of("c", 0x3000, 100);
  driver.free(address_on_cores(0x1000, sixteen_cores), 0, {.space = l1});
  driver.allocate(address_on_cores(0x2000, sixteen_cores), 7, {.space = l1, .tag = ledger_driver::tag_of(category::gradient)});
  driver.buffer_of("d", 0x4000, 500);
  const capacity_shortfall full = driver.shortfall();
  CHECK(full.free == 400);
  CHECK(full.held.by_operation == memprof::vector<owned_bytes>{{"", 500, 2}, {"c", 100, 1}});
  CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"other", 600, 3}});
}

TEST_CASE("core capacity: an shortfall behind the last segment of a finished profile is in no segment") {
  cores_driver driver;
  driver.buffer(0x1000, 10);
  driver.snapshot("ALL");
  driver.buffer(0x2000, 1000);
  CHECK(driver.finished_profile().space("l1").first_shortfall.segment == -1);
  CHECK(driver.shortfall().segment == 1);
}

TEST_CASE("core capacity: what is kept of an shortfall is counted in the ledger's bytes, and later ones keep nothing") {
  cores_driver driver;
  driver.buffer(0x1000, 900);
  driver.circular_buffer(0x2000, 100, sixteen_cores);
  const std::size_t before = driver.events.bytes();
  driver.circular_buffer(0x3000, 200, sixteen_cores);
  const std::size_t kept = driver.events.bytes();
  CHECK(kept >= before + 2 * 4096);  // a page for the owners and one for the largest blocks
  driver.circular_buffer(0x4000, 300, sixteen_cores);
  CHECK(driver.events.bytes() == kept);
  CHECK(driver.shortfall().requested == 200);
}

#if defined(__linux__)

TEST_CASE("core capacity: without memory for who held the rest the profile says so, and has all sums") {
  struct room {
    std::uint32_t largest_blocks;
    rlim_t left;
  };
  for (const room& few : {room{4096, 0}, room{4096, 64 * 1024}, room{1, 4096}}) {  // the last lacks memory for the owners
    cores_driver driver{{.largest_blocks = few.largest_blocks}};
    driver.buffer_of("a", 0x1000, 500);
    driver.buffer_of("a", 0x2000, 400);
    driver.begin("b");
    memprof::test::with_memory_left(few.left, [&] { driver.buffer(0x3000, 300); });

    const capacity_shortfall full = driver.shortfall();
    CHECK(!full.holders_known);
    CHECK(full.requested == 300);
    CHECK(full.operation == "b");
    CHECK(full.core == "0-0");
    CHECK(full.shortfall == 200);
    CHECK(full.held.bytes == 900);
    CHECK(full.held.blocks == 2);
    CHECK(full.held.remaining_bytes == 900);
    CHECK(full.held.by_category == memprof::vector<owned_bytes>{{"other", 900, 2}});
    CHECK(full.held.by_operation.empty());
    CHECK(full.held.largest_blocks.empty());
    CHECK(full.remedy.empty());
  }
}

TEST_CASE("core capacity: if memory ends while holders are collected, none of them is driver") {
  cores_driver driver{{.timeline_points = 2, .largest_blocks = 1}};
  for (std::uint64_t number = 1; number <= 300; ++number) driver.buffer_of(std::to_string(number), 0x1000 * number, 1);
  // A page for the largest block and two for the rows of the first 171 operations.
  memprof::test::with_memory_left(3 * 4096, [&] { driver.buffer(0xF000000, 800); });
  const capacity_shortfall full = driver.shortfall();
  CHECK(!full.holders_known);
  CHECK(full.held.bytes == 300);
  CHECK(full.held.remaining_bytes == 300);
  CHECK(full.held.by_operation.empty());
  CHECK(full.held.largest_blocks.empty());
}

#endif

}  // namespace memprof_tests::ledger_core_capacity
