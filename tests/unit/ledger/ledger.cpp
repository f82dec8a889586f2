#include <memprof/ledger/ledger.hpp>
#include <unit/ledger/ledger_driver.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memprof_tests::ledger_ledger {

using memprof::category;
using memprof::event_tally;
using memprof::profile;
using memprof::segment_usage;
using memprof::space_profile;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::test::ledger_driver;

TEST_CASE("ledger: segments add up as the design defines them, also when one only frees and names repeat") {
  ledger_driver driver;
  driver.allocate(0x100, 1000);
  driver.allocate(0x200, 500);
  driver.free(0x200);
  driver.snapshot("FORWARD");  // peak 1500, change +1000
  driver.free(0x100);
  driver.allocate(0x300, 700);
  driver.snapshot("BACKWARD");  // starts at 1000, sinks to 0, ends at 700: peak 0, change -300
  driver.allocate(0x400, 2000);
  driver.snapshot("FORWARD");  // starts at 700, reaches 2700

  const profile made = driver.finished_profile();
  REQUIRE(made.segments.size() == 3);
  const space_profile& cpu = made.space("cpu");
  REQUIRE(cpu.segments.size() == 3);
  const auto numbers = [&](std::size_t index) {
    const segment_usage& usage = cpu.segments[index];
    return std::vector<std::int64_t>{usage.segment_peak,     usage.allocations,        usage.deallocations,
                                     usage.segment_change,   usage.cumulative_peak,    usage.cumulative_current,
                                     usage.allocation_count, usage.deallocation_count, usage.peak_time_ns};
  };
  CHECK(numbers(0) == std::vector<std::int64_t>{1500, 1500, 500, 1000, 1500, 1000, 2, 1, 200});
  CHECK(numbers(1) == std::vector<std::int64_t>{0, 700, 1000, -300, 1500, 700, 1, 1, 300});
  CHECK(numbers(2) == std::vector<std::int64_t>{2000, 2000, 0, 2000, 2700, 2700, 1, 0, 600});
  CHECK(cpu.segments[0].segment == "FORWARD");
  CHECK(cpu.segments[2].segment == "FORWARD");
  CHECK(cpu.cumulative_peak == 2700);
  CHECK(cpu.cumulative_current == 2700);
  CHECK(cpu.allocations == 4200);
  CHECK(cpu.deallocations == 1500);
  CHECK(cpu.allocation_count == 4);
  CHECK(cpu.deallocation_count == 2);
  CHECK(cpu.peak_segment == 2);
  CHECK(made.exact);
}

TEST_CASE("ledger: a peak is the first moment at which it was reached") {
  ledger_driver driver;
  driver.begin("first");
  driver.allocate(0x100, 800);
  driver.free(0x100);
  driver.end("first");
  driver.begin("second");
  driver.allocate(0x200, 800);
  driver.end("second");
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(cpu.peak_operation == "first");
  CHECK(cpu.peak_time_ns == 200);
  REQUIRE(cpu.live_at_peak.largest_blocks.size() == 1);
  CHECK(cpu.live_at_peak.largest_blocks[0].address == 0x100);
}

TEST_CASE("ledger: a free of an unknown address is counted, not fatal") {
  ledger_driver driver;
  driver.allocate(0x100, 64);
  driver.free(0xDEAD, 4096);
  driver.free(0xBEEF);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(cpu.anomalies.unmatched_frees == event_tally{2, 4096});
  CHECK(cpu.deallocations == 0);
  CHECK(cpu.deallocation_count == 0);
  CHECK(cpu.cumulative_current == 64);
  CHECK(made.exact);
}

TEST_CASE("ledger: a second allocation at a live address replaces the older block") {
  ledger_driver driver;
  driver.allocate(0x100, 64);
  driver.allocate(0x100, 16);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(cpu.anomalies.replaced_allocations == event_tally{1, 64});
  CHECK(cpu.cumulative_current == 16);
  CHECK(cpu.cumulative_peak == 64);
  CHECK(cpu.allocation_count == 2);
  CHECK(cpu.deallocation_count == 1);
  CHECK(cpu.timeline.points.size() == 2);
}

TEST_CASE("ledger: a free that tells another size takes away what was allocated") {
  ledger_driver driver;
  driver.allocate(0x100, 64);
  driver.allocate(0x200, 64);
  driver.free(0x100, 100);
  driver.free(0x200, 4);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(cpu.anomalies.mismatched_sizes == event_tally{2, 36 + 60});
  CHECK(cpu.cumulative_current == 0);
}

TEST_CASE("ledger: a free by another thread is counted and charged to the operation that freed") {
  ledger_driver driver;
  driver.allocate(0x100, 64, {.thread = 1});
  driver.begin("consumer", 1, {.thread = 2});
  driver.free(0x100, 64, {.thread = 2});
  driver.end("consumer", 1, {.thread = 2});
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.space("cpu").anomalies.cross_thread_frees == event_tally{1, 64});
  REQUIRE(made.operations.size() == 1);
  REQUIRE(made.operations[0].usage.size() == 1);
  CHECK(made.operations[0].usage[0].freed == 64);
  CHECK(made.operations[0].usage[0].total_delta == -64);
  CHECK(made.operations[0].usage[0].max_delta == -64);
  CHECK(made.operations[0].usage[0].peak == 0);
}

TEST_CASE("ledger: sizes that no total can hold are rejected, and the totals never wrap") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  ledger_driver driver;
  driver.allocate(0x100, std::uint64_t{1} << 62);
  driver.allocate(0x200, ~std::uint64_t{0});
  driver.allocate(0x300, std::uint64_t{1} << 63);
  driver.allocate(0x400, std::uint64_t{1} << 62);        // one byte more than there is room for
  driver.allocate(0x500, (std::uint64_t{1} << 62) - 1);  // exactly the rest
  driver.allocate(0x600, 0);
  driver.free(0x100);
  driver.allocate(0x700, 1);  // what was freed does not come back: the sum of all allocations is a total as well
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(made.anomalies.rejected_events == 4);
  CHECK_FALSE(made.exact);
  CHECK(cpu.allocations == most);
  CHECK(cpu.cumulative_peak == most);
  CHECK(cpu.cumulative_current == (std::int64_t{1} << 62) - 1);
  CHECK(cpu.live_at_peak.blocks == 2);
}

TEST_CASE("ledger: driver sizes of unmatched frees saturate") {
  ledger_driver driver;
  driver.free(0x100, ~std::uint64_t{0});
  driver.free(0x200, 1);
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.space("cpu").anomalies.unmatched_frees == event_tally{2, std::numeric_limits<std::int64_t>::max()});
}

TEST_CASE("ledger: events with an unknown kind, with the id of no space or from an impossible thread are rejected") {
  ledger_driver driver;
  driver.record({1, 0x100, 8, 0, static_cast<event_kind>(0), 0, 0});
  driver.record({1, 0x100, 8, 0, static_cast<event_kind>(200), 0, 0});
  driver.record({1, 0x100, 8, 0, event_kind::allocate, memprof::extend::any_space, 0});
  driver.record({1, 0x100, 8, 0, event_kind::deallocate, memprof::extend::any_space, 0});
  driver.allocate(0x100, 8, {.thread = memprof::detail::block::max_thread + 1});
  CHECK(driver.events.rejected_events() == 5);
  CHECK(driver.finished_profile().spaces.empty());
  driver.allocate(0x100, 8, {.thread = memprof::detail::block::max_thread});
  CHECK(driver.events.rejected_events() == 5);
  CHECK(driver.finished_profile().space("cpu").cumulative_current == 8);
}

TEST_CASE("ledger: a space that shows up late has empty segments before, and peaks from its own begin") {
  ledger_driver driver;
  driver.allocate(0x100, 10);  // at 100
  driver.snapshot("FIRST");
  driver.allocate(0x100, 20);  // at 200, replaces
  driver.free(0x900, 1, {.space = 1});
  driver.snapshot("SECOND");
  const profile made = driver.finished_profile();
  const space_profile& cuda = made.space("cuda:0");
  REQUIRE(cuda.segments.size() == 2);
  segment_usage nothing;
  nothing.segment = "FIRST";
  CHECK(cuda.segments[0] == nothing);
  CHECK(cuda.segments[1].segment_peak == 0);
  CHECK(cuda.segments[1].peak_time_ns == 100);  // its segment began there
  CHECK(cuda.peak_segment == -1);
}

TEST_CASE("ledger: annotating the block that made the peak changes the categories at the peak") {
  ledger_driver driver;
  driver.allocate(0x100, 1000);
  driver.annotate(0x100,
                  "wte\x1f[65, 128]\x1f"
                  "float32",
                  category::parameter);
  driver.snapshot("MODEL_CREATION");
  const memprof::live_set set = driver.finished_profile().space("cpu").live_at_peak;
  REQUIRE(set.by_category.size() == 1);
  CHECK(set.by_category[0] == memprof::owned_bytes{"parameter", 1000, 1});
  REQUIRE(set.largest_blocks.size() == 1);
  CHECK(set.largest_blocks[0].category == category::parameter);
  CHECK(set.largest_blocks[0].name == "wte");
  CHECK(set.largest_blocks[0].shape == "[65, 128]");
  CHECK(set.largest_blocks[0].dtype == "float32");
  CHECK(set.largest_blocks[0].requires_grad == memprof::requires_grad::unknown);
}

TEST_CASE("ledger: an annotation may tell whether a gradient is computed") {
  ledger_driver driver;
  driver.allocate(0x100, 1000);
  driver.allocate(0x200, 900);
  driver.allocate(0x300, 800);
  driver.annotate(0x100, "wte\x1f[]\x1fint8\x1ftrue", category::parameter);
  driver.annotate(0x200,
                  "frozen\x1f[]\x1fint8\x1f"
                  "false",
                  category::parameter);
  driver.annotate(0x300, "odd\x1f[]\x1fint8\x1fTrue", category::parameter);
  driver.snapshot("MODEL_CREATION");
  const memprof::live_set set = driver.finished_profile().space("cpu").live_at_peak;
  REQUIRE(set.largest_blocks.size() == 3);
  CHECK(set.largest_blocks[0].requires_grad == memprof::requires_grad::yes);
  CHECK(set.largest_blocks[0].dtype == "int8");
  CHECK(set.largest_blocks[1].requires_grad == memprof::requires_grad::no);
  CHECK(set.largest_blocks[2].requires_grad == memprof::requires_grad::unknown);
}

TEST_CASE("ledger: annotating a block that came after the peak leaves the categories at the peak alone") {
  ledger_driver driver;
  driver.allocate(0x100, 1000);
  driver.free(0x100);
  driver.allocate(0x200, 10);
  driver.annotate(0x200, "late", category::gradient);
  driver.snapshot("ALL");
  const memprof::live_set set = driver.finished_profile().space("cpu").live_at_peak;
  REQUIRE(set.by_category.size() == 1);
  CHECK(set.by_category[0] == memprof::owned_bytes{"other", 1000, 1});
}

TEST_CASE("ledger: an annotation without a space finds the block wherever it lives") {
  ledger_driver driver;
  driver.allocate(0x100, 10, {.space = 0});
  driver.allocate(0x200, 20, {.space = 1});
  driver.annotate(0x200, "there", category::input, {.space = memprof::extend::any_space});
  driver.annotate(0x300, "nowhere", category::input, {.space = memprof::extend::any_space});
  driver.snapshot("ALL");
  const profile made = driver.finished_profile();
  CHECK(made.space("cuda:0").live_at_peak.largest_blocks.at(0).name == "there");
  CHECK(made.space("cpu").anomalies.unknown_annotations == event_tally{1, 0});
  CHECK(made.space("cuda:0").anomalies.unknown_annotations == event_tally{0, 0});
}

TEST_CASE("ledger: an annotation before the first event of any space is unknown to cpu, and nothing was lost") {
  ledger_driver driver;
  driver.annotate(0x100, "early", category::parameter, {.space = memprof::extend::any_space});
  const profile made = driver.open_profile();
  CHECK(made.exact);
  CHECK(made.anomalies.rejected_events == 0);
  REQUIRE(made.spaces.size() == 1);
  CHECK(made.space("cpu").anomalies.unknown_annotations == event_tally{1, 0});
  CHECK(made.space("cpu").allocation_count == 0);
}

TEST_CASE("ledger: a category comes from the allocation, else from the innermost operation that has one") {
  ledger_driver driver;
  const auto gradient = ledger_driver::tag_of(category::gradient);
  const auto input = ledger_driver::tag_of(category::input);
  driver.begin("backward", 1, {.tag = gradient});
  driver.begin("inner", 2);
  driver.allocate(0x100, 1);
  driver.allocate(0x200, 2, {.tag = input});
  driver.allocate(0x300, 4, {.tag = 9});  // no category has this tag
  driver.snapshot("ALL");
  const memprof::live_set set = driver.finished_profile().space("cpu").live_at_peak;
  REQUIRE(set.by_category.size() == 2);
  CHECK(set.by_category[0] == memprof::owned_bytes{"gradient", 5, 2});
  CHECK(set.by_category[1] == memprof::owned_bytes{"input", 2, 1});
}

TEST_CASE("ledger: its memory does not grow with the number of events") {
  memprof::extend::ledger events;
  std::vector<event> run;
  constexpr std::uint64_t live = 1000;
  constexpr std::uint64_t million = 1'000'000;
  for (std::uint64_t index = 0; index < live; ++index) {
    run.push_back({0, 4096 + 64 * index, 256, 0, event_kind::allocate, 0, 0});
  }
  events.apply(run.data(), run.data() + run.size(), 0);
  std::size_t after_a_million = 0;
  std::uint64_t state = 1;
  for (std::uint64_t applied = 0; applied < 5 * million; applied += run.size()) {
    run.clear();
    run.push_back({applied + 1, 1, 0, static_cast<memprof::extend::label>(1 + applied % 7), event_kind::scope_begin, 0, 0});
    for (int pair = 0; pair < 499; ++pair) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t address = 4096 + 64 * ((state >> 33) % live);
      run.push_back({0, address, 0, 0, event_kind::deallocate, 0, 0});
      run.push_back({0, address, (state >> 40) % 8192, 0, event_kind::allocate, 0, 0});
    }
    run.push_back({0, 1, 0, static_cast<memprof::extend::label>(1 + applied % 7), event_kind::scope_end, 0, 0});
    events.apply(run.data(), run.data() + run.size(), 0);
    if (applied < million) after_a_million = events.bytes();
  }
  CHECK(events.events() >= 5 * million);
  CHECK(events.space(0)->blocks().size() == live);
  CHECK(events.bytes() == after_a_million);
}

TEST_CASE("ledger: an allocation at a null address has failed, and a free of one does nothing") {
  ledger_driver driver;
  driver.allocate(0, 100);
  driver.allocate_on_stream(0, 50, "default\x1f");
  driver.free(0);
  driver.allocate(0x100, 10);
  const profile made = driver.open_profile();
  const space_profile& cpu = made.space("cpu");
  CHECK(cpu.anomalies.null_allocations == event_tally{2, 150});
  CHECK(cpu.anomalies.unmatched_frees.count == 0);
  CHECK(cpu.allocation_count == 1);
  CHECK(cpu.cumulative_peak == 10);
  CHECK(made.exact);
}

TEST_CASE("ledger: a segment costs only the spaces that changed in it, and counts in all of them") {
  constexpr std::int64_t segments = 5'000;
  constexpr std::uint8_t spaces = 254;
  ledger_driver driver{{.full_segments = 8}};
  driver.events.limit_work(std::uint64_t{1} << 20);
  for (std::uint8_t space = 0; space < spaces; ++space) driver.allocate(0x1000, 10, {.space = space});
  for (std::int64_t segment = 0; segment < segments; ++segment) driver.snapshot("STEP");
  CHECK_FALSE(driver.events.is_overworked());
  driver.allocate(0x2000, 5, {.space = 7});
  driver.snapshot("STEP");
  const profile made = driver.finished_profile();
  CHECK(made.exact);
  for (const std::size_t space : {std::size_t{6}, std::size_t{7}}) {
    const std::int64_t more = space == 7 ? 5 : 0;
    const memprof::segment_summary& steps = made.spaces[space].segments_by_name.at(0);
    CHECK(steps.cumulative_current.sum == 10 * (segments + 1) + more);
    CHECK(steps.cumulative_current.last == 10 + more);
    CHECK(steps.allocations.sum == 10 + more);
    REQUIRE(made.spaces[space].segments.size() == made.segments.size());
    for (const segment_usage& each : made.spaces[space].segments) CHECK(each.cumulative_current >= 10);
    CHECK(made.spaces[space].segments.back().cumulative_current == 10 + more);
    CHECK(made.spaces[space].segments.back().peak_time_ns >= made.segments.back().begin_ns);
  }
}

TEST_CASE("ledger: a thread that opens no operation costs next to nothing") {
  constexpr std::uint32_t threads = 10'000;
  ledger_driver fed;
  fed.allocate(0x1000, 8);
  const std::size_t before = fed.events.bytes();
  for (std::uint32_t thread = 1; thread < threads; ++thread) {
    fed.allocate(0x2000, 8, {.thread = thread});
    fed.free(0x2000, 8, {.thread = thread});
  }
  CHECK(fed.events.bytes() - before < threads * std::size_t{256});
  CHECK(fed.finished_profile().spaces.at(0).allocation_count == threads);
}

TEST_CASE("ledger: live blocks that begin within another one are counted, with the bytes that they share") {
  ledger_driver driver;
  driver.allocate(0x1000, 0x100);  // a slab
  driver.allocate(0x1010, 0x10);   // within it
  driver.allocate(0x10F0, 0x20);   // over its end
  driver.allocate(0x1100, 0x08);   // within that one
  driver.allocate(0x2000, 0x10);
  driver.allocate(0x2010, 0x10);  // touches
  driver.allocate(0x2008, 0);     // nothing
  driver.allocate(0x1020, 0x10);
  driver.free(0x1020);
  CHECK(driver.open_profile().space("cpu").anomalies.overlapping_blocks == event_tally{3, 0x10 + 0x10 + 0x08});
}

}  // namespace memprof_tests::ledger_ledger
