// The interleavings on which the order argument (record/event_order.hpp) stands, one by one. What is expected follows from the
// argument; that the order is a possible one at all is checked by call spans (stepped_event_path.hpp).
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memprof/record/start_recording.hpp>

#include <integration/stepped_event_path.hpp>

#include <cstdint>
#include <thread>

namespace memprof_tests::integration_forced_interleavings {

using memprof::detail::order_owner;
using memprof::detail::order_pending;
using memprof::detail::order_shared;
using memprof::detail::path_step;

namespace {

/// Threads A and B, and D, which only drains.
struct cast {
  explicit cast(std::uint32_t ring_capacity = 64) : path(ring_capacity) {}

  std::uint64_t a_records() { return path.record_at_once(a, in_a); }
  std::uint64_t b_records() { return path.record_at_once(b, in_b); }
  void drain() { d.run(path.snapshot(in_d)); }
  [[nodiscard]] std::uint64_t word() const { return path.shared.order_word.load(); }
  [[nodiscard]] bool is_owned_by(const memprof::detail::thread_slot& context) const {
    return order_owner(word()) == context.ring->id;
  }

  /// Both have recorded and stamp every event.
  void share() {
    a_records();
    b_records();
    REQUIRE(word() == order_shared);
    drain();
  }

  /// A is alone for so long that the next drain tries to give it the word.
  void leave_a_alone() {
    a_records();
    drain();
    a_records();
  }

  stepped::event_path path;
  stepped::thread a, b, d;
  memprof::detail::thread_slot& in_a = path.new_context();
  memprof::detail::thread_slot& in_b = path.new_context();
  memprof::detail::thread_slot& in_d = path.new_context();
};

bool has_stamp(const stepped::event_path& path, std::uint64_t call) {
  return path.drained.events.at(path.place_of(call)).stamp != 0;
}

}  // namespace

TEST_CASE("drain: an event without a stamp has the place of the one before it, which an earlier drain may have taken") {
  struct nobody {
    void apply(const memprof::extend::event*, const memprof::extend::event*, std::uint32_t) noexcept {}
  } consumer;
  memprof::extend::event events[3] = {};
  events[0].stamp = 10;
  events[2].stamp = 30;
  memprof::detail::event_ring ring;
  ring.tail = events;
  memprof::detail::apply_run(ring, events + 1, consumer);
  CHECK(memprof::detail::pending_key(ring) == 10);
  memprof::detail::apply_run(ring, events + 2, consumer);  // it has none itself
  CHECK(memprof::detail::pending_key(ring) == 30);
  CHECK(ring.last_stamp == 10);
  CHECK(ring.drained == 2);
}

TEST_CASE("order: a lone thread stamps its begin and then leaves stamps out") {
  cast on;
  const std::uint64_t first = on.a_records();
  const std::uint64_t second = on.a_records();
  on.drain();
  CHECK_FALSE(has_stamp(on.path, first));  // it directly follows the event that says that a thread began
  CHECK_FALSE(has_stamp(on.path, second));
  CHECK(on.is_owned_by(on.in_a));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a free on B comes after A's allocation without a stamp") {
  cast on;
  on.a_records();
  const std::uint64_t allocation = on.a_records();
  const std::uint64_t free = on.b_records();
  on.drain();
  CHECK_FALSE(has_stamp(on.path, allocation));
  CHECK(has_stamp(on.path, free));
  CHECK(on.path.place_of(allocation) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: an owner in flight while another revokes keeps its place, and stamps from then on") {
  cast on;
  on.a_records();
  const bool is_drained_between = GENERATE(false, true);
  const std::uint64_t in_flight = on.path.begin_call();
  REQUIRE(on.a.start_until(path_step::word_read, on.path.record(on.in_a, in_flight)));
  const std::uint64_t revoking = on.b_records();
  CHECK(on.word() == order_shared);
  if (is_drained_between) on.drain();
  on.a.finish();
  on.path.end_call(in_flight);

  const std::uint64_t free = on.b_records();  // of what was in flight
  const std::uint64_t next = on.a_records();
  on.drain();
  CHECK_FALSE(has_stamp(on.path, in_flight));
  CHECK(has_stamp(on.path, next));
  CHECK(on.path.place_of(in_flight) < on.path.place_of(free));
  CHECK((on.path.place_of(revoking) < on.path.place_of(in_flight)) == is_drained_between);
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: an event whose stamp is older than the drain but that was published after its heads were read waits") {
  cast on;
  on.share();
  const std::uint64_t slow = on.path.begin_call();
  REQUIRE(on.b.start_until(path_step::slot_written, on.path.record(on.in_b, slow)));
  const std::uint64_t quick = on.a_records();  // a later stamp
  REQUIRE(on.d.start_until(path_step::heads_read, on.path.snapshot(on.in_d)));
  on.b.finish();
  on.path.end_call(slow);
  on.d.finish();
  const std::uint64_t free = on.a_records();  // of what B allocated
  on.drain();
  CHECK(on.path.place_of(quick) < on.path.place_of(slow));
  CHECK(on.path.place_of(slow) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: what is recorded while a drain reads the heads waits, so that it cannot be seen without its cause") {
  cast on;
  on.share();
  const std::size_t drained_before = on.path.drained.events.size();
  // A's ring is the older one, so a drain reads B's head first; whichever it is, one head is read and the other is not.
  const path_step where = GENERATE(path_step::clock_read, path_step::head_read);
  REQUIRE(on.d.start_until(where, on.path.snapshot(on.in_d)));
  const std::uint64_t allocation = on.b_records();
  const std::uint64_t free = on.a_records();
  on.d.finish();
  CHECK(on.path.drained.events.size() == drained_before);
  on.drain();
  CHECK(on.path.place_of(allocation) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a thread that is alone for two drains owns the word, and loses it to the first other event") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.share();
  on.leave_a_alone();
  on.drain();
  REQUIRE(on.is_owned_by(on.in_a));
  CHECK(on.path.shared.grants == 1);
  const std::uint64_t first = on.a_records();
  const std::uint64_t allocation = on.a_records();
  const std::uint64_t free = on.b_records();
  CHECK(on.word() == order_shared);
  on.drain();
  CHECK(has_stamp(on.path, first));
  CHECK_FALSE(has_stamp(on.path, allocation));
  CHECK(on.path.place_of(allocation) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: the word is not granted while another thread that read `shared` has not published") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.share();
  const path_step where = GENERATE(path_step::word_read, path_step::slot_written, path_step::published);
  const std::uint64_t stalled = on.path.begin_call();
  REQUIRE(on.b.start_until(where, on.path.record(on.in_b, stalled)));
  on.a_records();
  on.drain();
  on.a_records();
  on.drain();
  on.a_records();
  on.drain();
  CHECK(on.path.shared.grants == 0);
  CHECK(on.word() == order_shared);
  on.b.finish();
  on.path.end_call(stalled);
  const std::uint64_t free = on.a_records();  // of what B allocated
  on.drain();
  CHECK(has_stamp(on.path, free));
  CHECK(on.path.place_of(stalled) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: who begins an event while the word is pending sets it to shared, and the grant fails") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.share();
  on.leave_a_alone();
  const path_step where = GENERATE(path_step::pending_set, path_step::barrier_passed, path_step::threads_checked);
  REQUIRE(on.d.start_until(where, on.path.snapshot(on.in_d)));
  REQUIRE(on.word() == order_pending);
  const std::uint64_t allocation = on.b_records();
  on.d.finish();
  CHECK(on.word() == order_shared);
  CHECK(on.path.shared.grants == 0);
  const std::uint64_t free = on.a_records();
  on.drain();
  CHECK(on.path.place_of(allocation) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a thread that read the pending word does not stamp behind the back of the new owner") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.share();
  on.leave_a_alone();
  REQUIRE(on.d.start_until(path_step::threads_checked, on.path.snapshot(on.in_d)));
  const std::uint64_t allocation = on.path.begin_call();
  REQUIRE(on.b.start_until(path_step::word_read, on.path.record(on.in_b, allocation)));
  on.d.finish();  // B's flag was looked at before it began, so the word is A's now
  REQUIRE(on.is_owned_by(on.in_a));
  on.a_records();
  on.a_records();
  on.b.finish();
  on.path.end_call(allocation);
  CHECK(on.word() == order_shared);
  const std::uint64_t free = on.a_records();
  on.drain();
  CHECK(on.path.place_of(allocation) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: an owner-to-be in flight during its grant may keep the stamp it takes") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.share();
  on.leave_a_alone();
  const path_step where = GENERATE(path_step::word_read, path_step::slot_written, path_step::published);
  const std::uint64_t in_flight = on.path.begin_call();
  REQUIRE(on.a.start_until(where, on.path.record(on.in_a, in_flight)));
  on.drain();
  CHECK(on.is_owned_by(on.in_a));
  on.a.finish();
  on.path.end_call(in_flight);
  const std::uint64_t next = on.a_records();
  const std::uint64_t after = on.a_records();
  const std::uint64_t free = on.b_records();
  on.drain();
  CHECK(has_stamp(on.path, in_flight));
  CHECK(has_stamp(on.path, next));  // the first under the new epoch
  CHECK_FALSE(has_stamp(on.path, after));
  CHECK(on.path.place_of(after) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: an old owner in flight over a revocation and a new grant to itself has no stamp and no wrong place") {
  cast on;
  if (!on.path.shared.can_grant) SKIP("the system has no membarrier");
  on.a_records();
  const std::uint64_t in_flight = on.path.begin_call();
  REQUIRE(on.a.start_until(path_step::word_read, on.path.record(on.in_a, in_flight)));
  on.b_records();
  on.drain();
  on.b_records();
  on.drain();  // B is alone, but A is busy
  CHECK(on.path.shared.grants == 0);
  on.a.finish();
  on.path.end_call(in_flight);
  const std::uint64_t free = on.b_records();
  on.drain();
  CHECK(on.path.place_of(in_flight) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a thread whose ring is full waits for the drain that is running, and loses nothing") {
  cast on{2};
  on.share();
  on.b_records();
  on.b_records();  // B's ring is full
  REQUIRE(on.d.start_until(path_step::heads_read, on.path.snapshot(on.in_d)));
  const std::uint64_t waiting = on.path.begin_call();
  std::thread late{[&on, waiting] { on.b.run(on.path.record(on.in_b, waiting)); }};
  on.d.finish();
  late.join();
  on.path.end_call(waiting);
  on.drain();
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a new thread in the ring of one that exited stamps first, although the word bears that ring's id") {
  cast on;
  on.a_records();
  const std::uint64_t last_of_old = on.a_records();
  REQUIRE(on.is_owned_by(on.in_a));
  const std::uint32_t ring = on.in_a.ring->id;
  on.a.run(on.path.exit_thread(on.in_a));
  memprof::detail::thread_slot& in_new = on.path.new_context();
  const std::uint64_t first_of_new = on.path.record_at_once(on.b, in_new);
  CHECK(in_new.ring->id == ring);
  const std::uint64_t free = on.path.record_at_once(on.d, in_new);
  on.drain();
  CHECK_FALSE(has_stamp(on.path, last_of_old));
  CHECK(on.path.place_of(first_of_new) < on.path.place_of(free));
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: threads that let go of their rings and record again keep their order") {
  cast on{4};
  on.a_records();
  on.b_records();
  on.a.run(on.path.exit_thread(on.in_a));
  on.b.run(on.path.exit_thread(on.in_b));
  for (int round = 0; round < 10; ++round) {
    on.a_records();
    on.b_records();
    on.path.record_at_once(on.d, on.in_d);
  }
  on.drain();
  CHECK(on.path.calls.size() == 32);
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: a signal handler that interrupts an event at any step is counted and writes nothing") {
  cast on;
  on.a_records();
  const path_step where = GENERATE(path_step::word_read, path_step::slot_written, path_step::published);
  const std::uint64_t interrupted = on.path.begin_call();
  REQUIRE(on.a.start_until(where, on.path.record(on.in_a, interrupted)));
  // What a handler on A's thread would do: it comes while A's context says that it is recording.
  memprof::detail::record<memprof::detail::no_pauses>(on.path.shared, on.in_a,
                                                      {0, 99, 1, 0, memprof::extend::event_kind::allocate, 0, 0});
  on.a.finish();
  on.path.end_call(interrupted);
  on.drain();
  CHECK(on.path.shared.reentrant_events.load() == 1);
  CHECK(on.path.is_in_a_possible_order());
}

TEST_CASE("order: of an allocation in flight while a capture begins, the capture has its free as well, or neither") {
  cast on;
  on.path.shared.active_capture = 0;
  const path_step in_flight_at = GENERATE(path_step::word_read, path_step::slot_written);
  const path_step published_at =
      GENERATE(path_step::recording_on, path_step::clock_read, path_step::head_read, path_step::heads_read);
  on.a_records();
  on.b_records();
  const std::uint64_t allocation = on.path.begin_call();
  REQUIRE(on.a.start_until(in_flight_at, on.path.record(on.in_a, allocation)));  // it saw an earlier capture
  ++on.path.shared.capture_count;
  REQUIRE(on.d.start_until(published_at, [&on] {
    const memprof::detail::activity_guard hidden{on.in_d, memprof::detail::activity::busy};
    const memprof::detail::lock_guard lock{on.path.shared.lock};
    memprof::detail::start_recording<stepped::pauses>(on.path.shared);
  }));
  on.a.finish();
  on.path.end_call(allocation);
  const bool is_recording = on.path.shared.active_capture != 0;
  on.d.finish();
  if (is_recording) on.a_records();  // the free
  on.drain();
  const bool has_allocation = on.path.place_of(allocation) != on.path.drained.events.size();
  CHECK((!has_allocation || is_recording));
  CHECK(on.path.drained.events.size() == (has_allocation ? 2U : 1U));
}

}  // namespace memprof_tests::integration_forced_interleavings
