#include <memprof/toolkit/analysis/block_callers.hpp>

#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/leaks_json.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/fact_table.hpp>

#include <toolkit/analysis/schema_keys.hpp>
#include <toolkit/analysis/stacked_trace.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof_tests::analysis_block_callers {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using memprof::compared_run;
using memprof::comparison;
using memprof::comparison_row;
using memprof::heap_stacks;
using memprof::leak_report;
using memprof::owner_change;

namespace {

const heap_stacks all{0, 0, 0, "libunwind"};
const heap_stacks sampled{65'536, 65'536, 0, "libunwind"};

/// What `fill` records, with the fact that there are stacks.
struct recorded {
  stacked_trace run;
  memprof::profile profile;

  recorded(const heap_stacks& stacks, const std::function<void(stacked_trace&)>& fill) {
    fill(run);
    run.writer.add_facts(memprof::extend::to_table(std::vector<heap_stacks>{stacks}));
    run.writer.finish();
    profile = memprof::profile_of(run.events);
  }

  [[nodiscard]] compared_run compared(const char* title) const {
    return compared_run_of(title, profile, profile.space("cpu"),
                           memprof::stack_table_of(run.events, true, true, {}, memprof::block_callers_of(profile)));
  }
};

comparison compared(const recorded& before, const recorded& after) {
  return memprof::compare_runs({before.compared("before")}, {after.compared("after")});
}

}  // namespace

TEST_CASE("block callers: the difference of two runs is divided among the code that asked, without a rest") {
  const recorded before{all, [](stacked_trace& run) {
                          run.allocate(0x10000, 1000, run.stack(0x10));
                          run.allocate(0x20000, 100, 0);
                        }};
  const recorded after{all, [](stacked_trace& run) {
                         run.allocate(0x10000, 1000, run.stack(0x10));
                         run.allocate(0x11000, 500, run.stack(0x10));
                         run.allocate(0x30000, 300, run.stack(0x20));
                         run.allocate(0x20000, 40, 0);
                       }};
  const comparison found = compared(before, after);
  REQUIRE(found.callers.size() == 3);
  CHECK(found.callers[0].owner == "program+0x10");
  CHECK(found.callers[0].before == 1000);
  CHECK(found.callers[0].after == 1500);
  CHECK(found.callers[0].blocks_after == 2);
  CHECK(found.callers[1].owner == "program+0x20");
  CHECK(found.callers[1].change() == 300);
  CHECK(found.callers[1].what == owner_change::came);
  CHECK(found.callers[2].owner.empty());
  CHECK(found.callers[2].change() == -60);
  const std::string text = memprof::to_text(found, {});
  CHECK_THAT(text, ContainsSubstring("Asked for by"));
  CHECK_THAT(text, ContainsSubstring("blocks without a stack"));
  const nlohmann::ordered_json json = memprof::to_json(found);
  const nlohmann::json schema = read_schema("comparison.schema.json");
  check_keys(json, schema);
  REQUIRE(json.at("callers").size() == 3);
  check_keys(json.at("callers")[0], schema.at("definitions").at("caller"));
  CHECK(json.at("callers")[2].at("caller").is_null());
}

TEST_CASE("block callers: runs that differ only in who asked are not equal") {
  const recorded before{all, [](stacked_trace& run) { run.allocate(0x10000, 1000, run.stack(0x10)); }};
  const recorded after{all, [](stacked_trace& run) { run.allocate(0x10000, 1000, run.stack(0x20)); }};
  CHECK(compared(before, before).is_equal());
  CHECK_FALSE(compared(before, after).is_equal());
}

TEST_CASE("block callers: of a sample, only blocks that all have a stack have a row") {
  const auto fill = [](stacked_trace& run) {
    run.allocate(0x10000, 100'000, run.stack(0x10));
    run.allocate(0x40000, 50, run.stack(0x20));  // stands for others
  };
  const recorded run{sampled, fill};
  const comparison found = compared(run, run);
  REQUIRE(found.callers.size() == 2);
  CHECK(found.callers[0].owner == "program+0x10");
  CHECK(found.callers[0].after == 100'000);
  CHECK(found.callers[1].owner.empty());
  CHECK(found.callers[1].after == 50);
}

TEST_CASE("block callers: without stacks in both runs there are none") {
  const auto fill = [](stacked_trace& run) { run.allocate(0x10000, 1000, 0); };
  const recorded with{all, fill};
  recorded without{all, fill};
  without.profile.facts.clear();
  CHECK(compared(with, without).callers.empty());
}

TEST_CASE("block callers: what grows names the code that asked for most of it since then") {
  const recorded grown{all, [](stacked_trace& run) {
                         const auto operation = run.writer.begin_operation("log");
                         run.allocate(0x1000, 1'000'000, run.stack(0x90));  // before the first step ends: no growth
                         run.writer.end_operation(operation);
                         for (std::uint64_t step = 0; step < 64; ++step) {
                           if (step >= 16) {
                             const auto logging = run.writer.begin_operation("log");
                             run.allocate(0x1'000'000 + step * 0x1000, 300, run.stack(0x20, 0x10));
                             run.allocate(0x2'000'000 + step * 0x1000, 100, run.stack(0x30));
                             run.writer.end_operation(logging);
                           }
                           run.writer.end_segment("STEP");
                         }
                       }};
  const leak_report found = memprof::find_leaks(grown.run.events, grown.profile);
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].operation == "log");
  CHECK(found.growing[0].caller == "program+0x10");
  CHECK_THAT(found.growing[0].caller_share, WithinAbs(0.75, 1e-9));
  CHECK_THAT(memprof::to_text(found, 1, {}), ContainsSubstring("log: 75.0 % of it asked for by program+0x10"));
  const nlohmann::ordered_json json = memprof::to_json(found);
  check_keys(json.at("grows").at(0), read_schema("leaks.schema.json").at("definitions").at("owner"));
}

TEST_CASE("block callers: a sampled block stands for others of its size in what grows") {
  const recorded grown{sampled, [](stacked_trace& run) {
                         for (std::uint64_t step = 0; step < 64; ++step) {
                           // One of 64 small blocks has a stack, and stands for about 64; the large ones for themselves.
                           run.allocate(0x1'000'000 + step * 0x1000, 1024, step % 64 == 0 ? run.stack(0x10) : 0);
                           if (step % 4 == 0) run.allocate(0x2'000'000 + step * 0x10'0000, 65'536, run.stack(0x20));
                           run.writer.end_segment("STEP");
                         }
                       }};
  const leak_report found = memprof::find_leaks(grown.run.events, grown.profile);
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].caller == "program+0x20");
  // 1024 / (1 - exp(-1024 / 65536)) = 66,049.3 bytes of the one, 16 * 65,536 of the other.
  CHECK_THAT(found.growing[0].caller_share, WithinAbs(1'048'576.0 / (1'048'576.0 + 66'049.33), 1e-6));
}

}  // namespace memprof_tests::analysis_block_callers
