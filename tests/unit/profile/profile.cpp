#include <memprof/detail/error.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <cstdint>
#include <initializer_list>

namespace memprof_tests::profile_profile {

namespace {

memprof::profile two_spaces() {
  memprof::profile result;
  result.spaces.resize(2);
  result.spaces[0].name = "cpu";
  result.spaces[1].name = "cuda:0";
  result.spaces[1].cumulative_peak = 5;
  result.operations = {{"a", "a", -1, 1, {}}, {"a/b", "b", 0, 2, {}}};
  return result;
}

}  // namespace

TEST_CASE("profile: spaces and operations are found by name") {
  const memprof::profile profile = two_spaces();
  CHECK(profile.space("cuda:0").cumulative_peak == 5);
  CHECK(profile.find_space("cpu") == &profile.spaces[0]);
  CHECK(profile.find_space("cp") == nullptr);
  CHECK(profile.find_operation("a/b") == &profile.operations[1]);
  CHECK(profile.find_operation("b") == nullptr);
}

TEST_CASE("profile: asking for a space that is not there names those that are") {
  CHECK_THROWS_MATCHES(two_spaces().space("dram"), memprof::error,
                       Catch::Matchers::Message("the profile has no memory space 'dram'; it has 'cpu', 'cuda:0'"));
  CHECK_THROWS_MATCHES(
      memprof::profile{}.space("cpu"), memprof::error,
      Catch::Matchers::Message("the profile has no memory space 'cpu'; it has none: no allocation was recorded"));
}

TEST_CASE("profile: only what follows from all events is called exact") {
  CHECK_FALSE(memprof::profile{}.exact);
  memprof::detail::label_table labels;
  memprof::extend::label spaces[memprof::extend::ledger::max_spaces] = {labels.intern("cpu"), memprof::extend::other_names};
  const memprof::extend::clock_readings clock;
  memprof::extend::ledger events;
  const auto profile_after = [&](std::uint8_t space) {
    const memprof::extend::event made{1, 0x1000, 10, 0, memprof::extend::event_kind::allocate, space, 0};
    events.apply(&made, &made + 1, 0);
    return memprof::detail::build_profile(events, {labels, spaces, clock});
  };
  CHECK(profile_after(0).exact);
  // In the row of several spaces, blocks at equal addresses cannot be told apart.
  const memprof::profile merged = profile_after(1);
  CHECK(merged.spaces[1].stands_for_others);
  CHECK_FALSE(merged.exact);
}

TEST_CASE("profile: the names of run modes") {
  CHECK(to_string(memprof::run_mode::normal) == "normal");
  CHECK(to_string(memprof::run_mode::no_dispatch) == "no_dispatch");
}

TEST_CASE("profile: a trace may name its memory spaces before it describes the capture") {
  memprof::extend::trace_fold fold;
  fold.name(1, "dram");
  fold.space({7, 1, 150, false});
  memprof::extend::capture_info info;
  info.begin_stamp = 5'000'000;
  info.largest_blocks = 1;
  fold.info(info);
  const memprof::extend::event events[] = {
      {5'000'010, 0x1000, 100, 0, memprof::extend::event_kind::allocate, 7, 0},
      {5'000'020, 0x2000, 100, 0, memprof::extend::event_kind::allocate, 7, 0},
      {5'000'030, 0, 0, 1, memprof::extend::event_kind::segment_end, memprof::extend::any_space, 0},
      {5'000'030, 0, 0, 0, memprof::extend::event_kind::capture_end, memprof::extend::any_space, 0}};
  fold.events(events, events + 4, memprof::detail::no_ring_id);
  const memprof::profile profile = memprof::detail::build_profile_of(fold);
  CHECK(profile.duration_ns == 30);
  const memprof::space_profile& space = profile.space("dram");
  CHECK(space.peak_time_ns == 20);
  CHECK(space.live_at_peak.largest_blocks.size() == 1);
  CHECK(space.capacity == 150);
}

TEST_CASE("profile: recorded bytes that a capture left to the reader are those live where the reading is in the trace") {
  using memprof::process_memory;
  using memprof::extend::event_kind;
  constexpr std::uint8_t host = 3;
  constexpr std::uint8_t device = 4;
  memprof::extend::trace_fold fold;
  fold.info({});
  fold.space({host, 1, 0, false, memprof::extend::host_memory});
  fold.space({device, 2, 0, false, 0});
  process_memory first;
  first.moment = "first";
  process_memory second = first;
  second.moment = "most_resident";
  second.time_ns = 10;
  second.recorded_bytes = -1;
  process_memory last = second;
  last.moment = "last";
  last.time_ns = 20;
  const auto add = [&](std::initializer_list<process_memory> rows) {
    fold.facts({memprof::detail::table_of(rows.begin(), rows.end())});
  };
  const memprof::extend::event events[] = {{1, 0x1000, 100, 0, event_kind::allocate, host, 0},
                                           {2, 0x2000, 7, 0, event_kind::allocate, device, 0},
                                           {3, 0x3000, 30, 0, event_kind::allocate, host, 0},
                                           {4, 0x1000, 0, 0, event_kind::deallocate, host, 0}};
  fold.events(events, events + 2, memprof::detail::no_ring_id);
  add({first, second});
  fold.events(events + 2, events + 4, memprof::detail::no_ring_id);
  add({first, second, last});
  const auto rows = memprof::rows_of<process_memory>(memprof::detail::build_profile_of(fold).facts);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].recorded_bytes == 0);
  CHECK(rows[1].recorded_bytes == 100);
  CHECK(rows[2].recorded_bytes == 30);
}

}  // namespace memprof_tests::profile_profile
