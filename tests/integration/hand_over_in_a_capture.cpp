// The same programs on the process's event path, from `begin_capture` to the profile, with rings that overflow all the time.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memprof/memprof.hpp>

#include <integration/hand_over.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_hand_over_in_a_capture {

namespace {

constexpr const char* space_name = "handed over";

class process_sink {
 public:
  void allocate(std::uint64_t address, std::uint64_t bytes) { sink_.allocate(space_, pointer(address), bytes); }
  void deallocate(std::uint64_t address, std::uint64_t bytes) { sink_.deallocate(space_, pointer(address), bytes); }

 private:
  static const void* pointer(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

  memprof::memory_space space_{space_name};
  memprof::extend::event_sink sink_;
};

process_sink make_sink() { return {}; }

/// What the profile says of an ended capture. Fails the test for anything impossible.
hand_over::truth recorded(const memprof::profile& profile) {
  const memprof::space_profile& space = profile.space(space_name);
  CHECK(profile.exact);
  CHECK(space.anomalies.unmatched_frees.count == 0);
  CHECK(space.anomalies.replaced_allocations.count == 0);
  CHECK(space.anomalies.mismatched_sizes.count == 0);
  return {space.cumulative_peak, space.cumulative_current, space.allocations, space.allocation_count};
}

#if defined(__SANITIZE_THREAD__)
constexpr unsigned share = 4;
#else
constexpr unsigned share = 1;
#endif

}  // namespace

TEST_CASE("threads: strict alternation of one 1,000-byte block has a peak of 1,000, never 2,000") {
  const auto threads = GENERATE(2U, 4U);
  auto capture = memprof::begin_capture({.ring_capacity = GENERATE(2U, 7U, 1024U)});
  const hand_over::truth expected = hand_over::alternation(threads, 5'000 / share, make_sink);
  capture.end();
  CHECK(recorded(capture.profile()) == expected);
}

TEST_CASE("threads: a bounded queue of 8 x 512 bytes peaks at 4,096") {
  const auto pairs = GENERATE(1U, 2U, 4U);
  auto capture = memprof::begin_capture({.ring_capacity = GENERATE(2U, 8U, 1024U)});
  const hand_over::truth expected = hand_over::bounded_queue(pairs, 20'000 / share / pairs, make_sink);
  capture.end();
  CHECK(recorded(capture.profile()) == expected);
}

TEST_CASE("threads: tokens that go round peak at the sum of their sizes") {
  const auto threads = GENERATE(2U, 8U);
  auto capture = memprof::begin_capture({.ring_capacity = GENERATE(2U, 4U)});
  const hand_over::truth expected = hand_over::token_ring(threads, 5, 2'000 / share, make_sink);
  capture.end();
  CHECK(recorded(capture.profile()) == expected);
}

TEST_CASE("threads: a random mix in one critical section has the peak that the section saw, whoever reads profiles meanwhile") {
  const auto threads = GENERATE(2U, 4U, 8U);
  const auto ring_capacity = GENERATE(2U, 8U);
  auto capture = memprof::begin_capture({.ring_capacity = ring_capacity});
  std::atomic<bool> is_over{false};
  std::atomic<bool> was_always_exact{true};
  std::thread reader{[&] {
    for (int count = 0; count < 50 && !is_over; ++count) {
      memprof::snapshot("PHASE " + std::to_string(count));
      if (!memprof::current_profile().exact) was_always_exact = false;
      std::this_thread::yield();
    }
  }};
  const std::uint32_t seed = 30'000 + threads * 100 + ring_capacity;
  INFO("seed " << seed);
  const hand_over::truth expected = hand_over::serialised_mix(threads, 40'000 / share / threads, seed, make_sink);
  is_over = true;
  reader.join();
  capture.end();
  CHECK(was_always_exact);
  CHECK(recorded(capture.profile()) == expected);
}

TEST_CASE("threads: several read profiles at once while others record, and each sees only what has happened") {
  constexpr unsigned readers = 4;
  auto capture = memprof::begin_capture({.ring_capacity = 8});
  std::atomic<bool> is_over{false};
  std::atomic<unsigned> faults{0};
  std::atomic<unsigned> profiles{0};
  std::vector<std::thread> reading;
  for (unsigned index = 0; index < readers; ++index) {
    reading.emplace_back([&] {
      std::int64_t allocations = 0;
      for (int count = 0; count < 20 || !is_over; ++count) {
        const memprof::profile so_far = capture.profile();
        ++profiles;
        const memprof::space_profile* const space = so_far.find_space(space_name);
        if (space == nullptr) continue;
        const bool adds_up = space->allocations - space->deallocations == space->cumulative_current;
        if (!so_far.exact || so_far.complete || !adds_up || space->allocations < allocations) ++faults;
        allocations = space->allocations;
        std::this_thread::yield();
      }
    });
  }
  const hand_over::truth expected = hand_over::serialised_mix(4, 8'000 / share / 4, 4711, make_sink);
  is_over = true;
  for (std::thread& reader : reading) reader.join();
  capture.end();
  CHECK(faults == 0);
  CHECK(profiles >= readers * 20);
  CHECK(recorded(capture.profile()) == expected);
}

}  // namespace memprof_tests::integration_hand_over_in_a_capture
