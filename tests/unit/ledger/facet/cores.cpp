#include <memprof/ledger/facet/cores.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof_tests::ledger_core_ledger {

using memprof::category;
using memprof::core_peaks;
using memprof::event_tally;
using memprof::profile;
using memprof::space_profile;
using memprof::extend::buffer_kind;
using memprof::extend::core_range;
using memprof::extend::event_kind;
using memprof::test::ledger_driver;
using memprof::test::where;

namespace {

constexpr std::int64_t kib = 1024;
constexpr core_range all_cores{0, 0, 7, 7};
constexpr where l1{.space = 3};

/// A ledger whose blocks are all in L1.
class l1_driver : public ledger_driver {
 public:
  using ledger_driver::ledger_driver;

  void buffer(std::uint64_t address, std::int64_t bytes, core_range cores = all_cores) {
    allocate_on_cores(address, static_cast<std::uint64_t>(bytes), cores, buffer_kind::buffer, l1);
  }
  void circular_buffer(std::uint64_t address, std::int64_t bytes, core_range cores) {
    allocate_on_cores(address, static_cast<std::uint64_t>(bytes), cores, buffer_kind::circular_buffer, l1);
  }
  void free_buffer(std::uint64_t address, core_range cores = all_cores, std::uint64_t bytes = 0) {
    free_on_cores(address, cores, bytes, l1);
  }
  void begin_program(core_range cores = memprof::extend::any_core) { free_circular_buffers(cores, l1); }
  /// The space after one segment over everything.
  [[nodiscard]] space_profile finished() {
    snapshot("ALL");
    return finished_profile().space("l1");
  }
};

}  // namespace

// The numbers of tt-metal's pull request 56091: a program that splits its work has one class of circular buffers on columns 0, 3
// and 6 and another on 1, 2, 4 and 5, at the same address. The tracker reported 1128 + 1060 KB on a core, of 1464 KB that there
// are.
TEST_CASE("core ledger: circular buffers on disjoint cores are not added up, though their address is the same") {
  l1_driver driver;
  driver.begin_program();
  for (const core_range column : {core_range{0, 0, 0, 7}, core_range{3, 0, 3, 7}, core_range{6, 0, 6, 7}}) {
    driver.circular_buffer(0x1B400, 1128 * kib, column);
  }
  driver.circular_buffer(0x1B400, 1060 * kib, {1, 0, 2, 7});
  driver.circular_buffer(0x1B400, 1060 * kib, {4, 0, 5, 7});
  const space_profile space = driver.finished();
  CHECK(space.cores.peaks == core_peaks{1128 * kib, 0, 1128 * kib, "0-0"});
  CHECK(space.cores.segments == memprof::vector<core_peaks>{{1128 * kib, 0, 1128 * kib, "0-0"}});
  CHECK(space.cumulative_peak == (3 * 8 * 1128 + 4 * 8 * 1060) * kib);
  CHECK(space.anomalies == memprof::space_anomalies{});
}

// The other case of that pull request: 488 KB was reported, 360 KB was real.
TEST_CASE("core ledger: a buffer on every core is the base of both of two disjoint core sets") {
  l1_driver driver;
  driver.buffer(0x100000, 64 * kib);
  driver.circular_buffer(0x1B400, 128 * kib, {4, 0, 7, 7});
  driver.circular_buffer(0x1B400, 296 * kib, {0, 0, 3, 7});
  const space_profile space = driver.finished();
  CHECK((64 + 128 + 296) * kib == 488 * kib);
  CHECK(space.cores.peaks == core_peaks{296 * kib, 64 * kib, 360 * kib, "0-0"});
  REQUIRE(space.cores.ranges.size() == 3);
  CHECK(space.cores.ranges[0].peaks.total == 360 * kib);
  CHECK(space.cores.ranges[2] == memprof::core_range_peaks{"[4-0 - 7-7]", {128 * kib, 64 * kib, 192 * kib, "4-0"}});
}

// ttnn-visualizer's issue 1604: 1.73 MiB was shown of 1.20 MiB on the busiest core.
TEST_CASE("core ledger: the peak is what the busiest core holds") {
  l1_driver driver;
  driver.buffer(0x100000, 200 * kib, {0, 0, 1, 0});
  driver.circular_buffer(0x1B400, 750 * kib, {0, 0, 0, 0});
  driver.circular_buffer(0x1B400, 1024 * kib, {1, 0, 1, 0});
  const space_profile space = driver.finished();
  CHECK(space.cores.peaks == core_peaks{1024 * kib, 200 * kib, 1224 * kib, "1-0"});
}

// A captured matrix product of tt-metal, with the peaks in bytes that its own test expects.
TEST_CASE("core ledger: a captured program has the peaks that its own tracker driver") {
  l1_driver driver;
  driver.buffer(1'552'384, 20'480);
  driver.begin_program();
  driver.circular_buffer(111'616, 131'072, {0, 0, 1, 1});
  driver.circular_buffer(242'688, 131'072, {0, 0, 1, 1});
  driver.circular_buffer(373'760, 524'288, {0, 0, 1, 1});
  driver.free_buffer(1'552'384);
  const space_profile space = driver.finished();
  CHECK(space.cores.peaks == core_peaks{786'432, 20'480, 806'912, "0-0"});
  CHECK(space.cumulative_current == 4 * 786'432);
}

TEST_CASE("core ledger: the peak of the sum is not the sum of the peaks") {
  l1_driver driver;
  driver.circular_buffer(0x1000, 600, {0, 0, 0, 0});
  driver.begin_program();
  driver.circular_buffer(0x1000, 100, {0, 0, 0, 0});
  driver.buffer(0x2000, 550, {0, 0, 0, 0});
  CHECK(driver.finished().cores.peaks == core_peaks{600, 550, 650, "0-0"});
}

// The tracker wrapped around: peak 0 after the first free, or 18446744073709518848 bytes.
TEST_CASE("core ledger: a free of a block from before the capture is counted, and takes nothing away") {
  l1_driver driver;
  driver.free_buffer(0x9000, all_cores, 65'536);
  driver.buffer(0x1000, 32'768);
  driver.free_buffer(0x8000);
  const space_profile space = driver.finished();
  CHECK(space.cores.peaks == core_peaks{0, 32'768, 32'768, "0-0"});
  CHECK(space.anomalies.unmatched_frees == event_tally{2, 64 * 65'536});
  CHECK(space.cumulative_current == 64 * 32'768);
}

TEST_CASE("core ledger: a program that starts ends the circular buffers on any of its cores as a whole, and no others") {
  l1_driver driver;
  driver.circular_buffer(0x1000, 100, {0, 0, 3, 0});
  driver.circular_buffer(0x2000, 10, {0, 0, 0, 0});
  driver.circular_buffer(0x3000, 1, {4, 0, 4, 0});
  driver.buffer(0x4000, 7, {0, 0, 4, 0});
  driver.begin_program({3, 0, 3, 5});
  driver.snapshot("BEGUN");
  driver.circular_buffer(0x5000, 1000, {0, 0, 0, 0});
  const space_profile space = driver.finished();
  // Afterwards: 10 and the buffer on the first core, the buffer alone on the next three, 1 and the buffer on the last one.
  CHECK(space.segments[0].cumulative_current == 10 + 1 + 5 * 7);
  CHECK(space.segments[0].deallocation_count == 1);
  CHECK(space.segments[0].deallocations == 400);
  CHECK(space.cores.segments[0] == core_peaks{110, 7, 117, "0-0"});
  CHECK(space.cores.segments[1] == core_peaks{1010, 7, 1017, "0-0"});
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("core ledger: what a segment finds on the cores counts in its peaks") {
  l1_driver driver;
  driver.snapshot("BEFORE");
  driver.buffer(0x1000, 100, {0, 0, 0, 0});
  driver.buffer(0x2000, 50, {0, 0, 0, 0});
  driver.snapshot("FIRST");
  driver.free_buffer(0x2000, {0, 0, 0, 0});
  driver.snapshot("FREES");  // begins with 150
  driver.circular_buffer(0x3000, 30, {0, 0, 0, 0});
  driver.snapshot("LAST");  // begins with 100
  const profile made = driver.finished_profile();
  CHECK(made.space("l1").cores.segments ==
        memprof::vector<core_peaks>{{0, 0, 0, ""}, {0, 150, 150, "0-0"}, {0, 150, 150, "0-0"}, {30, 100, 130, "0-0"}});
  CHECK(made.space("l1").cores.peaks == core_peaks{30, 150, 150, "0-0"});
}

TEST_CASE("core ledger: segments from before the first block are zeros, also while the next one has not ended") {
  l1_driver driver;
  driver.allocate(0x100, 5, l1);
  driver.snapshot("WITHOUT");
  driver.snapshot("WITHOUT");
  driver.buffer(0x1000, 100, {0, 0, 0, 0});
  CHECK(driver.open_profile().space("l1").cores.segments ==
        memprof::vector<core_peaks>{{0, 0, 0, ""}, {0, 0, 0, ""}, {0, 100, 100, "0-0"}});
}

TEST_CASE("core ledger: the segment that has not ended is part of the profile so far") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 0, 0});
  driver.snapshot("FIRST");
  driver.buffer(0x2000, 11, {1, 0, 1, 0});
  driver.free_buffer(0x1000, {0, 0, 0, 0});
  driver.buffer(0x3000, 200, {1, 0, 1, 0});
  const space_profile space = driver.open_profile().space("l1");
  CHECK(space.cores.segments == memprof::vector<core_peaks>{{0, 100, 100, "0-0"}, {0, 211, 211, "1-0"}});
  CHECK(space.cores.peaks == core_peaks{0, 211, 211, "1-0"});
}

TEST_CASE("core ledger: of equally busy cores the first is named, row after row") {
  l1_driver driver;
  driver.buffer(0x1000, 10, {0, 3, 0, 3});
  driver.buffer(0x2000, 10, {5, 1, 6, 1});
  driver.buffer(0x3000, 9, {0, 0, 0, 0});
  CHECK(driver.finished().cores.peaks.busiest_core == "5-1");
}

TEST_CASE("core ledger: rectangles are listed once, by what lies on their cores, whatever block it is of") {
  l1_driver driver;
  for (int round = 0; round < 3; ++round) {
    driver.buffer(0x1000, 10, {0, 0, 1, 1});
    driver.buffer(0x2000, 5, {2, 0, 2, 0});
    driver.buffer(0x3000, 20, {1, 1, 2, 2});
    for (const core_range cores : {core_range{0, 0, 1, 1}, core_range{2, 0, 2, 0}, core_range{1, 1, 2, 2}}) {
      driver.free_buffer(cores == core_range{0, 0, 1, 1} ? 0x1000 : cores.x0 == 2 ? 0x2000 : 0x3000, cores);
    }
  }
  const space_profile space = driver.finished();
  REQUIRE(space.cores.ranges.size() == 3);
  CHECK(space.cores.ranges[0] == memprof::core_range_peaks{"[0-0 - 1-1]", {0, 30, 30, "1-1"}});
  CHECK(space.cores.ranges[1] == memprof::core_range_peaks{"[1-1 - 2-2]", {0, 30, 30, "1-1"}});
  CHECK(space.cores.ranges[2] == memprof::core_range_peaks{"[2-0 - 2-0]", {0, 5, 5, "2-0"}});
  CHECK(space.cumulative_current == 0);
}

TEST_CASE("core ledger: cores keep their bytes when farther ones turn up") {
  l1_driver driver;
  driver.buffer(0x1000, 10, {0, 0, 1, 1});
  driver.buffer(0x2000, 3, {9, 0, 9, 0});
  driver.buffer(0x3000, 4, {0, 12, 0, 12});
  driver.buffer(0x4000, 1, {1, 1, 1, 1});
  driver.buffer(0x5000, 2, {255, 255, 255, 255});
  driver.buffer(0x6000, 100, {0, 0, 9, 12});
  const space_profile space = driver.finished();
  CHECK(space.cores.peaks == core_peaks{0, 111, 111, "1-1"});
  CHECK(space.cores.ranges.back() == memprof::core_range_peaks{"[255-255 - 255-255]", {0, 2, 2, "255-255"}});
}

TEST_CASE("core ledger: on the whole device a block has the bytes of all its cores, and its operation and category") {
  l1_driver driver;
  driver.begin("matmul");
  const auto tag = static_cast<std::uint16_t>(ledger_driver::tag_of(category::activation));
  driver.allocate_on_cores(0x1000, 100, {0, 0, 3, 1}, buffer_kind::circular_buffer, {.space = 3, .tag = tag});
  driver.end("matmul");
  driver.annotate(memprof::extend::address_on_cores(0x1000, {0, 0, 3, 1}), "in0\x1f[32, 32]\x1f", category::activation, l1);
  const space_profile space = driver.finished();
  CHECK(space.cumulative_peak == 800);
  REQUIRE(space.live_at_peak.largest_blocks.size() == 1);
  CHECK(space.live_at_peak.largest_blocks[0].bytes == 800);
  CHECK(space.live_at_peak.largest_blocks[0].operation == "matmul");
  CHECK(space.live_at_peak.largest_blocks[0].category == category::activation);
  CHECK(space.live_at_peak.largest_blocks[0].name == "in0");
}

TEST_CASE("core ledger: a second block at a live address of the same first core replaces the older, whatever its kind") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 3, 0});
  driver.circular_buffer(0x1000, 40, {0, 0, 0, 0});
  driver.snapshot("REPLACED");
  driver.free_buffer(0x1000, {0, 0, 0, 0});
  driver.snapshot("FREED");
  const space_profile space = driver.finished();
  CHECK(space.anomalies.replaced_allocations == event_tally{1, 400});
  CHECK(space.cores.segments[0] == core_peaks{40, 100, 100, "0-0"});
  CHECK(space.cores.segments[1] == core_peaks{40, 0, 40, "0-0"});
  CHECK(space.cores.segments[2] == core_peaks{});
}

TEST_CASE("core ledger: an ordinary free at the address of a block on cores does not match it") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 0, 0});
  driver.free(0x1000, 100, l1);
  driver.snapshot("ALL");
  driver.buffer(0x2000, 1, {0, 0, 0, 0});
  const space_profile space = driver.finished();
  CHECK(space.anomalies.unmatched_frees == event_tally{1, 100});
  CHECK(space.cumulative_current == 101);
  CHECK(space.cores.peaks.total == 101);
}

TEST_CASE("core ledger: a free that tells another size takes away what was allocated") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 1, 0});
  driver.free_buffer(0x1000, {0, 0, 1, 0}, 90);
  driver.snapshot("ALL");
  const space_profile space = driver.finished();
  CHECK(space.anomalies.mismatched_sizes == event_tally{1, 20});
  CHECK(space.cores.segments[1] == core_peaks{});
}

TEST_CASE("core ledger: frees by another thread are counted, also those of circular buffers") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 1, 0});
  driver.circular_buffer(0x2000, 10, {0, 0, 1, 0});
  driver.free_on_cores(0x1000, {0, 0, 1, 0}, 0, {.space = 3, .thread = 1});
  driver.free_circular_buffers(memprof::extend::any_core, {.space = 3, .thread = 1});
  const space_profile space = driver.finished();
  CHECK(space.anomalies.cross_thread_frees == event_tally{2, 220});
  CHECK(space.cumulative_current == 0);
}

TEST_CASE("core ledger: impossible rectangles, kinds and sizes are rejected and change nothing") {
  l1_driver driver;
  driver.buffer(0x1000, 100, {0, 0, 0, 0});
  driver.buffer(0x2000, 1, {1, 0, 0, 0});
  driver.buffer(0x3000, 1, {0, 1, 0, 0});
  driver.free_buffer(0x1000, {1, 0, 0, 0});
  driver.begin_program({0, 1, 0, 0});
  const auto on_one_core = [&](std::uint64_t address, std::uint64_t bytes, core_range cores, std::uint16_t tag,
                               std::uint8_t space) {
    driver.record({1, address, bytes, cores.packed(), event_kind::allocate_on_cores, space, tag});
  };
  on_one_core(0x4000, 1, {0, 0, 0, 0}, 2 << 8, 3);                  // no kind of buffer
  on_one_core(0x5000, std::uint64_t{1} << 62, {0, 0, 1, 0}, 0, 3);  // 2^63 bytes together
  on_one_core(0x6000, std::uint64_t{1} << 63, {0, 0, 1, 0}, 0, 3);  // 2^64: 0 if it wrapped
  on_one_core(0x7000, 1, {0, 0, 0, 0}, 0, memprof::extend::any_space);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.anomalies.rejected_events == 8);
  CHECK_FALSE(made.exact);
  const space_profile& space = made.space("l1");
  CHECK(space.cores.peaks == core_peaks{0, 100, 100, "0-0"});
  CHECK(space.cores.ranges.size() == 1);
  CHECK(space.cumulative_current == 100);
}

TEST_CASE("core ledger: a space without blocks on cores has none of it, also if something was freed on cores") {
  l1_driver driver;
  driver.free_buffer(0x1000);
  driver.begin_program();
  driver.allocate(0x100, 5, l1);
  const space_profile space = driver.finished();
  CHECK(space.cores == memprof::core_profile{});
  CHECK(space.cumulative_peak == 5);
}

TEST_CASE("core ledger: its memory is counted, and does not grow with the number of events") {
  l1_driver driver{{.timeline_points = 2}};
  driver.allocate(0x100, 5, l1);
  const std::size_t before = driver.events.bytes();
  const auto run_program = [&driver] {
    driver.begin_program();
    for (std::uint64_t index = 0; index < 8; ++index) {
      driver.circular_buffer(0x1000 + 64 * index, 10, {0, 0, 7, 7});
      driver.buffer(0x10000 + 64 * index, 10);
    }
    for (std::uint64_t index = 0; index < 8; ++index) driver.free_buffer(0x10000 + 64 * index);
  };
  run_program();
  const std::size_t after_one = driver.events.bytes();
  for (int program = 0; program < 2'000; ++program) run_program();
  CHECK(after_one > before);
  CHECK(driver.events.bytes() == after_one);
  CHECK(driver.finished().cores.peaks == core_peaks{80, 80, 160, "0-0"});
}

TEST_CASE("core ledger: the bytes of all cores up to the farthest are among its own") {
  l1_driver driver{{.timeline_points = 2}};
  driver.buffer(0x1000, 10, {0, 0, 0, 0});
  const std::size_t with_one_core = driver.events.bytes();
  driver.buffer(0x1000, 10, {255, 255, 255, 255});
  // Live bytes, the open segment's peaks and those of the segments before it.
  CHECK(driver.events.bytes() >= with_one_core + 65'535 * 3 * sizeof(memprof::detail::core_usage));
}

}  // namespace memprof_tests::ledger_core_ledger
