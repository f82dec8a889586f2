#include <memprof/ledger/ledger.hpp>
#include <memprof/memprof.hpp>
#include <memprof/trace/event_log.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

using memprof::event;
using memprof::event_kind;
using memprof::event_log;

namespace {

/// What a replay hands over: thread and address of each event.
struct noted_events {
  void apply(const event* first, const event* last, std::uint32_t thread) {
    for (; first != last; ++first) all.emplace_back(thread, first->address);
  }
  std::vector<std::pair<std::uint32_t, std::uint64_t>> all;
};

using noted = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

[[nodiscard]] event at(std::uint64_t address) { return {0, address, 1, 0, event_kind::allocate, 0, 0}; }

}  // namespace

TEST_CASE("event log: a replay gives the events back in order, with their threads") {
  const std::array events{at(1), at(2), at(3), at(4), at(5)};
  event_log log;
  log.append(&events[0], &events[2], 7);
  log.append(&events[2], &events[3], 7);
  log.append(&events[3], &events[4], 8);
  log.append(&events[4], &events[5], 7);
  noted_events replayed;
  log.replay(replayed);
  CHECK(replayed.all == noted{{7, 1}, {7, 2}, {7, 3}, {8, 4}, {7, 5}});
  CHECK(log.size() == 5);
  CHECK(log.left_out() == 0);
}

TEST_CASE("event log: what goes beyond the limit is counted, and no later event leaves a gap") {
  const std::array events{at(1), at(2), at(3), at(4)};
  event_log log{3};
  log.append(&events[0], &events[2], 1);
  log.append(&events[0], &events[2], 1);  // one too many
  log.append(&events[3], &events[4], 2);  // would have fitted
  noted_events replayed;
  log.replay(replayed);
  CHECK(replayed.all == noted{{1, 1}, {1, 2}});
  CHECK(log.left_out() == 3);
}

TEST_CASE("event log: the events of a capture on several threads make the same totals in another ledger") {
  event_log log;
  auto capture = memprof::begin_capture({.ring_capacity = 4, .log = &log});
  const auto work = [](std::size_t bytes) {
    const auto scope = memprof::track_operation<"work">();
    memprof::memory_resource memory;
    for (int round = 0; round < 100; ++round) {
      void* const first = memory.allocate(bytes);
      void* const second = memory.allocate(2 * bytes);
      memory.deallocate(first, bytes);
      memory.deallocate(second, 2 * bytes);
    }
  };
  std::thread other{work, 64};
  work(1024);
  other.join();
  capture.end();
  memprof::ledger replayed;
  log.replay(replayed);
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& cpu = profile.space("cpu");
  REQUIRE(replayed.space(memprof::cpu_space) != nullptr);
  CHECK(replayed.events() == static_cast<std::uint64_t>(profile.cost.events));
  CHECK(replayed.space(memprof::cpu_space)->allocated() == cpu.allocations);
  CHECK(cpu.allocations == 100 * 3 * (64 + 1024));
  CHECK(replayed.space(memprof::cpu_space)->live() == 0);
  CHECK(replayed.space(memprof::cpu_space)->open_segment().live_at_peak == cpu.cumulative_peak);
}
