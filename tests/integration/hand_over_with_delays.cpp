// Free-running threads on an event path of their own, with a random delay at each of its steps and rings so small that they
// overflow all the time.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memprof/detail/pages.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/rings.hpp>

#include <integration/hand_over.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

namespace memprof_tests::integration_hand_over_with_delays {

namespace {

/// Stops a thread at some steps for a random while.
struct random_delays {
  static void reach(memprof::detail::path_step) noexcept {
    static std::atomic<std::uint32_t> seeds{12345};
    static thread_local std::uint32_t state = seeds.fetch_add(7919);
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    if (state % 64 == 0) std::this_thread::yield();
    if (state % 8 != 0) return;
    for (std::uint32_t left = (state >> 8) % 256; left != 0; --left) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

struct ledger_consumer {
  memprof::extend::ledger events;
  void apply(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring) noexcept {
    events.apply(first, last, ring);
  }
};

class delayed_path {
 public:
  explicit delayed_path(std::uint32_t ring_capacity) {
    shared_.ring_capacity = ring_capacity;
    shared_.capture_count = 1;
    shared_.make_room = memprof::detail::make_room;
    shared_.capture = &consumer_;
    shared_.drain = [](memprof::registry& shared) noexcept {
      memprof::detail::drain_rings<random_delays>(shared, *static_cast<ledger_consumer*>(shared.capture));
    };
    memprof::detail::prepare_order(shared_);
  }
  delayed_path(const delayed_path&) = delete;
  delayed_path& operator=(const delayed_path&) = delete;
  ~delayed_path() {
    memprof::detail::event_ring* ring = shared_.rings.load();
    while (ring != nullptr) {
      memprof::detail::event_ring* const next = ring->next;
      memprof::detail::unmap_pages(ring->slots, memprof::detail::ring_slots::bytes_for(ring->slots->capacity));
      memprof::detail::unmap_pages(ring, sizeof(memprof::detail::event_ring));
      ring = next;
    }
    memprof::detail::unmap_pages(shared_.drain_heap, shared_.drain_heap_capacity * sizeof(memprof::detail::event_ring*));
  }

  /// One thread's way into the path; its end is the thread's.
  class sink {
   public:
    explicit sink(memprof::registry& shared) : shared_(shared) {}
    sink(const sink&) = delete;
    sink& operator=(const sink&) = delete;
    ~sink() {
      const memprof::detail::activity_guard leaving{context_, memprof::detail::activity::busy};
      memprof::detail::detach_ring(shared_, context_);
    }
    void allocate(std::uint64_t address, std::uint64_t bytes) { record(address, bytes, memprof::extend::event_kind::allocate); }
    void deallocate(std::uint64_t address, std::uint64_t bytes) {
      record(address, bytes, memprof::extend::event_kind::deallocate);
    }

   private:
    void record(std::uint64_t address, std::uint64_t bytes, memprof::extend::event_kind kind) {
      memprof::detail::record<random_delays>(shared_, context_, {0, address, bytes, 0, kind, 0, 0});
    }
    memprof::registry& shared_;
    memprof::detail::thread_slot context_;
  };

  [[nodiscard]] auto sink_maker() {
    return [this] { return sink{shared_}; };
  }

  /// What the ledger says, once everything is drained. Fails the test for anything impossible.
  hand_over::truth recorded() {
    {
      const memprof::detail::lock_guard lock{shared_.lock};
      shared_.drain(shared_);
    }
    const memprof::detail::space_ledger& space = *consumer_.events.space(0);
    CHECK(space.unmatched_frees.count == 0);
    CHECK(space.replaced_allocations.count == 0);
    CHECK(space.mismatched_sizes.count == 0);
    CHECK(consumer_.events.rejected_events() == 0);
    return {space.open_segment().peak_live_bytes, space.live(), space.allocated(),
            static_cast<std::int64_t>(space.allocation_count())};
  }

 private:
  memprof::registry shared_;
  ledger_consumer consumer_;
};

#if defined(__SANITIZE_THREAD__)
constexpr unsigned share = 4;  // of the rounds: each is some ten times as slow
#else
constexpr unsigned share = 1;
#endif

}  // namespace

TEST_CASE("delayed threads: strict alternation of one block has the peak of one block") {
  const auto threads = GENERATE(2U, 4U);
  const auto ring_capacity = GENERATE(2U, 5U);
  delayed_path path{ring_capacity};
  const hand_over::truth expected = hand_over::alternation(threads, 4'000 / share, path.sink_maker());
  CHECK(path.recorded() == expected);
  CHECK(expected.peak == 1000);
}

TEST_CASE("delayed threads: a bounded queue of 8 x 512 bytes peaks at 4,096") {
  const auto pairs = GENERATE(1U, 2U, 4U);
  const auto ring_capacity = GENERATE(2U, 8U);
  delayed_path path{ring_capacity};
  const hand_over::truth expected = hand_over::bounded_queue(pairs, 8'000 / share / pairs, path.sink_maker());
  CHECK(path.recorded() == expected);
  CHECK(expected.peak == 4096);
}

TEST_CASE("delayed threads: tokens that go round peak at the sum of their sizes") {
  const auto threads = GENERATE(2U, 3U, 8U);
  const auto ring_capacity = GENERATE(2U, 4U);
  delayed_path path{ring_capacity};
  const hand_over::truth expected = hand_over::token_ring(threads, 5, 1'500 / share, path.sink_maker());
  CHECK(path.recorded() == expected);
  CHECK(expected.peak == 1500);
}

TEST_CASE("delayed threads: a random mix in one critical section has the peak that the section saw") {
  const auto threads = GENERATE(2U, 4U, 8U);
  const auto ring_capacity = GENERATE(2U, 3U, 8U);
  delayed_path path{ring_capacity};
  const std::uint32_t seed = 20'000 + threads * 100 + ring_capacity;
  INFO("seed " << seed);
  const hand_over::truth expected = hand_over::serialised_mix(threads, 10'000 / share / threads, seed, path.sink_maker());
  CHECK(path.recorded() == expected);
}

}  // namespace memprof_tests::integration_hand_over_with_delays
