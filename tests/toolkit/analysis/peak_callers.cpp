#include <memprof/toolkit/analysis/peak_callers.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/peak_callers_text.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>

#include <toolkit/analysis/stacked_trace.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::analysis_peak_callers {

using Catch::Matchers::ContainsSubstring;
using memprof::heap_stacks;
using memprof::peak_callers;
using memprof::extend::label;

const heap_stacks all{};
const heap_stacks sampled{65'536, 65'536, 0, "libunwind"};

TEST_CASE("peak_callers: with all stacks, callers and the rest add up to the peak") {
  stacked_trace run;
  run.allocate(0x10000, 100, run.stack(0x20, 0x10));
  run.allocate(0x20000, 900, run.stack(0x20, 0x10));
  run.deallocate(0x20000);  // not at the peak
  run.allocate(0x30000, 500, run.stack(0x30, 0x10));
  run.allocate(0x40000, 400, run.stack(0x20));
  run.allocate(0x50000, 1000, 0);
  run.deallocate(0x10000);
  run.allocate(0x60000, 50, run.stack(0x70));  // after it
  run.writer.finish();
  const peak_callers found = memprof::peak_callers_of(run.events, all, 2);
  CHECK(found.bytes == 2000);
  CHECK(found.bytes == memprof::profile_of(run.events).space("cpu").cumulative_peak);
  CHECK(found.bytes_without == 1000);
  REQUIRE(found.callers.size() == 2);
  CHECK(found.callers[0] == memprof::caller_bytes{"program+0x10", 600, 2, false, 0, 2});
  CHECK(found.callers[1] == memprof::caller_bytes{"program+0x20", 400, 1, false, 0, 1});
  REQUIRE(found.largest.size() == 2);
  CHECK(found.largest[0].address == 0x30000);
  CHECK(found.largest[0].caller == "program+0x10");
  CHECK(found.largest[1].bytes == 400);
  const std::string text = memprof::to_text(found);
  CHECK_THAT(text, ContainsSubstring("600 B") && ContainsSubstring("program+0x10") && ContainsSubstring("30"));
  CHECK_THAT(text, ContainsSubstring("blocks without a stack"));
  CHECK(text.find('~') == std::string::npos);
}

TEST_CASE("peak_callers: stacks of Python are those of the space with the greatest peak") {
  stacked_trace run;
  const memprof::extend::space_id device = run.writer.space("cuda:0");
  run.allocate(0x10000, 100, run.stack(0x10));
  run.writer.put_event({0, 0x20000, 900, run.stack(0x20), memprof::extend::event_kind::allocate, device.value, 0});
  run.writer.finish();
  const peak_callers python = memprof::peak_callers_of(run.events, heap_stacks{64, 0, 0, "python"}, 2);
  CHECK(python.space == "cuda:0");
  CHECK(python.bytes == 900);
  REQUIRE(python.callers.size() == 1);
  CHECK(python.callers[0].caller == "program+0x20");
  const peak_callers heap = memprof::peak_callers_of(run.events, all, 2);
  CHECK(heap.space == "cpu");
  CHECK(heap.bytes == 100);
}

/// Two large blocks, and `small` blocks of 1,000 bytes, of which the first ones have a stack: 6 from 0x10, then from 0x30.
void allocate_sample(stacked_trace& run, std::uint64_t small, std::uint64_t with_stack) {
  run.allocate(0x10'0000, 70'000, run.stack(0x10));
  run.allocate(0x20'0000, 100'000, run.stack(0x20));
  for (std::uint64_t block = 0; block < small; ++block) {
    const label asked = block >= with_stack ? 0 : block < 6 ? run.stack(0x10) : run.stack(0x30);
    run.allocate(0x100'0000 + block * 0x1000, 1000, asked);
  }
  run.writer.finish();
}

TEST_CASE("peak_callers: of a sample, the bytes of the small blocks are divided among who asked, without a rest") {
  stacked_trace run;
  allocate_sample(run, 100, 10);
  const peak_callers found = memprof::peak_callers_of(run.events, sampled, 10);
  CHECK(found.bytes == 270'000);
  CHECK(found.sampled_blocks == 10);
  CHECK(found.unsampled_blocks == 0);
  CHECK(found.bytes_without == 0);
  REQUIRE(found.callers.size() == 3);
  // Blocks of one size: 6 of 10 are 60 of 100. With p = 1 - exp(-1000 / 65536), the variance of a block is v = 1000^2 (1 - p) /
  // p^2, that of the share (0.4^2 * 6 + 0.6^2 * 4) v, scaled by 100,000 / (10 * 1000 / p).
  const double chance = 1 - std::exp(-1000.0 / 65'536);
  const double error = 10'000 * std::sqrt(2.4 * (1 - chance));
  CHECK(found.callers[0].caller == "program+0x10");
  CHECK(found.callers[0].is_estimated);
  CHECK(std::abs(found.callers[0].bytes - 130'000) < 1e-6);
  CHECK(std::abs(found.callers[0].blocks - 61) < 1e-6);
  CHECK(std::abs(found.callers[0].standard_error - error) < 1e-6);
  CHECK(found.callers[1] == memprof::caller_bytes{"program+0x20", 100'000, 1, false, 0, 1});
  CHECK(found.callers[2].caller == "program+0x30");
  CHECK(std::abs(found.callers[2].bytes - 40'000) < 1e-6);
  CHECK(std::abs(found.callers[2].standard_error - error) < 1e-6);
  const std::string text = memprof::to_text(found);
  CHECK_THAT(text, ContainsSubstring("~127 KiB +- 15.0 KiB"));
  CHECK_THAT(text, ContainsSubstring(" 97.7 KiB"));  // exact
  CHECK_THAT(text, ContainsSubstring("an estimate, with its standard error, from 10 of the blocks below 64 KiB"));
}

TEST_CASE("peak_callers: a sample of few blocks is not divided, but said") {
  stacked_trace run;
  allocate_sample(run, 100, 9);
  const peak_callers found = memprof::peak_callers_of(run.events, sampled, 10);
  REQUIRE(found.callers.size() == 2);
  CHECK(found.callers[0].bytes == 100'000);
  CHECK(found.callers[1].bytes == 70'000);
  CHECK_FALSE(found.callers[1].is_estimated);
  CHECK(found.unsampled_bytes == 100'000);
  CHECK(found.unsampled_blocks == 100);
  const std::string text = memprof::to_text(found);
  CHECK_THAT(text, ContainsSubstring("blocks below 64 KiB, of which 9 have a stack: --stacks=all records each"));
  CHECK(text.find('~') == std::string::npos);
}

TEST_CASE("peak_callers: of a sample without a small block there is no estimate, and no word about one") {
  stacked_trace run;
  allocate_sample(run, 0, 0);
  const std::string text = memprof::to_text(memprof::peak_callers_of(run.events, sampled, 10));
  CHECK_THAT(text, ContainsSubstring("program+0x20"));
  CHECK(text.find("below 64 KiB") == std::string::npos);
}

TEST_CASE("peak_callers: the largest blocks at the peak are named, unless they have a name or another peak is meant") {
  stacked_trace run;
  run.allocate(0x10000, 500, run.stack(0x10));
  run.allocate(0x20000, 400, run.stack(0x20));
  run.allocate(0x30000, 300, 0);
  run.writer.annotate(memprof::extend::block_address{0x20000}, {.name = "weight"});
  run.writer.finish();
  peak_callers found = memprof::peak_callers_of(run.events, all, 10);
  memprof::profile named = memprof::profile_of(run.events);
  memprof::name_largest_blocks(named, found);
  const auto& largest = named.space("cpu").live_at_peak.largest_blocks;
  REQUIRE(largest.size() == 3);
  CHECK(largest[0].name == "program+0x10");
  CHECK(largest[1].name == "weight");
  CHECK(largest[2].name.empty());
  found.bytes = 1;
  memprof::profile other = memprof::profile_of(run.events);
  memprof::name_largest_blocks(other, found);
  CHECK(other.space("cpu").live_at_peak.largest_blocks[0].name.empty());
}

TEST_CASE("peak_callers: collapsed stacks have the calls within the operation, and blocks without a stack outside them") {
  stacked_trace run;
  const memprof::extend::open_operation step = run.writer.begin_operation("step");
  run.allocate(0x10000, 500, run.stack(0x20, 0x10));
  run.allocate(0x20000, 400, run.stack(0x20, 0x30));
  run.allocate(0x30000, 300, 0);
  run.writer.end_operation(step);
  run.writer.finish();
  std::unique_ptr<memprof::named_stacks> stacks;
  const memprof::stack_table table =
      memprof::stack_table_of(run.events, false, false, [&](const memprof::detail::label_table& names, label stack) {
        if (stacks == nullptr) stacks = std::make_unique<memprof::named_stacks>(names);
        return stacks->texts(stack);
      });
  std::string text;
  struct {
    std::string& text;
    void write(std::string_view part) { text += part; }
  } sink{text};
  memprof::write_collapsed(table, memprof::stack_value::peak, sink);
  CHECK_THAT(text, ContainsSubstring("cpu;step;program+0x20;program+0x10 500\n"));
  CHECK_THAT(text, ContainsSubstring("cpu;step;program+0x20;program+0x30 400\n"));
  CHECK_THAT(text, ContainsSubstring("cpu;step 300\n"));
}

TEST_CASE("peak_callers: the blocks of a profile get the names of who asked for them") {
  stacked_trace run;
  run.allocate(0x10000, 100, run.stack(0x20, 0x10));
  run.allocate(0x20000, 900, run.stack(0x30));
  run.writer.add_facts(memprof::extend::to_table(std::vector<heap_stacks>{all}));
  run.writer.finish();
  memprof::profile of = memprof::profile_of(run.events);
  const std::optional<peak_callers> found = memprof::add_peak_callers(of, run.events);
  REQUIRE(found);
  CHECK(found->bytes == 1000);
  const auto& largest = of.space("cpu").live_at_peak.largest_blocks;
  REQUIRE(largest.size() == 2);
  CHECK(largest[0].name == "program+0x30");
  CHECK(largest[1].name == "program+0x10");
}

TEST_CASE("peak_callers: without stacks, or without the events of the peak, a profile stays as it is") {
  stacked_trace run;
  run.allocate(0x10000, 100, run.stack(0x20));
  run.writer.add_facts(memprof::extend::to_table(std::vector<heap_stacks>{all}));
  run.writer.finish();
  memprof::profile higher = memprof::profile_of(run.events);
  higher.spaces[0].cumulative_peak = 101;  // of events that the trace has lost
  memprof::profile without = memprof::profile_of(run.events);
  without.facts.clear();
  for (memprof::profile* each : {&higher, &without}) {
    const memprof::profile before = *each;
    CHECK_FALSE(memprof::add_peak_callers(*each, run.events));
    CHECK(*each == before);
  }
}

}  // namespace memprof_tests::analysis_peak_callers
