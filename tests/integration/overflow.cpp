// What happens when rings are full, over many events.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memprof/memprof.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

namespace memprof_tests::integration_overflow {

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t share = 5;  // of the events: each is some ten times as slow
#else
constexpr std::int64_t share = 1;
#endif

const void* pointer(std::int64_t number) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number)); }

/// Pairs of an allocation and a free with 64 blocks live.
void record_pairs(const memprof::memory_space& space, std::int64_t pairs) {
  const memprof::extend::event_sink sink;
  for (std::int64_t count = 0; count < pairs; ++count) {
    sink.allocate(space, pointer(16 * (1 + count % 64)), 100);
    if (count >= 63) sink.deallocate(space, pointer(16 * (1 + (count - 63) % 64)), 100);
  }
}

}  // namespace

TEST_CASE("overflow: ten million events through rings of two lose nothing") {
  constexpr std::int64_t pairs = 5'000'000 / share;
  const memprof::memory_space space{"overflow"};
  auto capture = memprof::begin_capture({.ring_capacity = 2});
  record_pairs(space, pairs);
  capture.end();
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& seen = profile.space("overflow");
  CHECK(profile.exact);
  CHECK(profile.anomalies.dropped_events == 0);
  CHECK(seen.allocation_count == pairs);
  CHECK(seen.allocations == pairs * 100);
  CHECK(seen.cumulative_current == 63 * 100);
  CHECK(seen.cumulative_peak == 64 * 100);
  CHECK(profile.cost.events >= 2 * pairs - 63);
}

TEST_CASE("overflow: the profiler's own memory does not grow with events after the first million") {
  const memprof::memory_space space{"overflow"};
  auto capture = memprof::begin_capture();
  record_pairs(space, 1);
  capture.snapshot("FIRST");  // memory grows with segments, by pages: the second one finds its place made
  record_pairs(space, 2'500'000 / share + 1'000'000 * (share > 1));
  capture.end();
  const memprof::profiler_cost& cost = capture.profile().cost;
  CHECK(cost.events > 1'000'000);
  CHECK(cost.memory_bytes_at_million_events > 0);
  CHECK(cost.memory_bytes <= cost.memory_bytes_at_million_events);
}

TEST_CASE("overflow: threads that empty each other's rings leave errno alone") {
  const memprof::memory_space space{"overflow"};
  auto capture = memprof::begin_capture({.ring_capacity = 2});
  std::atomic<int> changes{0};
  const auto record = [&] {
    const memprof::extend::event_sink sink;
    errno = EDOM;
    for (int count = 0; count < 20'000; ++count) {
      sink.allocate(space, &count, 8);
      sink.deallocate(space, &count, 8);
      if (errno == EDOM) continue;
      ++changes;
      errno = EDOM;
    }
  };
  {
    const std::array<std::jthread, 4> threads{std::jthread{record}, std::jthread{record}, std::jthread{record},
                                              std::jthread{record}};
  }
  CHECK(changes == 0);
}

TEST_CASE("overflow: drop counts every event that it drops, and the profile says that it is not exact") {
  const memprof::memory_space space{"overflow"};
  const memprof::extend::event_sink sink;
  const auto capacity = GENERATE(2U, 100U);
  auto capture = memprof::begin_capture({.ring_capacity = capacity, .overflow_policy = memprof::overflow::drop});
  for (std::int64_t count = 0; count < 1000; ++count) sink.allocate(space, pointer(16 * (1 + count)), 10);
  capture.snapshot("FIRST");
  for (std::int64_t count = 1000; count < 2000; ++count) sink.allocate(space, pointer(16 * (1 + count)), 10);
  capture.end();
  const memprof::profile& profile = capture.profile();
  const std::int64_t kept = profile.space("overflow").allocation_count;
  CHECK_FALSE(profile.exact);
  CHECK(profile.anomalies.dropped_events > 0);
  CHECK(kept + profile.anomalies.dropped_events == 2000);
  // A ring's worth each time; the first event of a thread that is new to the library shares it.
  CHECK(kept <= 2 * static_cast<std::int64_t>(capacity));
  CHECK(kept >= 2 * static_cast<std::int64_t>(capacity) - 1);
  CHECK(profile.space("overflow").segments[0].allocations == profile.space("overflow").segments[0].allocation_count * 10);
}

TEST_CASE("overflow: a capture that drops but never had to is exact") {
  const memprof::memory_space space{"overflow"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.ring_capacity = 64, .overflow_policy = memprof::overflow::drop});
  sink.allocate(space, pointer(16), 10);
  sink.deallocate(space, pointer(16), 10);
  capture.end();
  CHECK(capture.profile().exact);
  CHECK(capture.profile().space("overflow").cumulative_peak == 10);
}

TEST_CASE("overflow: a thread that drops does not wait for a drain") {
  const memprof::memory_space space{"overflow"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.ring_capacity = 4, .overflow_policy = memprof::overflow::drop});
  std::atomic<bool> is_done{false};
  std::atomic<bool> has_ring{false};
  std::atomic<bool> may_fill{false};
  std::thread real_time{[&] {
    sink.allocate(space, pointer(16), 10);  // the first event of a thread may wait: it makes the ring
    has_ring = true;
    while (!may_fill) std::this_thread::yield();
    for (std::int64_t count = 1; count < 100; ++count) sink.allocate(space, pointer(16 * (1 + count)), 10);
    is_done = true;
  }};
  bool was_done = false;
  {
    while (!has_ring) std::this_thread::yield();
    // Stands for a drain that takes long.
    const memprof::detail::lock_guard drain_is_running{memprof::abi_1::process_registry.lock};
    may_fill = true;
    for (int millisecond = 0; millisecond < 60'000 && !is_done; ++millisecond) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    was_done = is_done;
  }
  real_time.join();
  capture.end();
  CHECK(was_done);
  CHECK(capture.profile().space("overflow").allocation_count + capture.profile().anomalies.dropped_events == 100);
}

}  // namespace memprof_tests::integration_overflow
