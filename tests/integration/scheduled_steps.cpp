// Threads that record, drain, exit and come back under schedules chosen at random, one step of the event path at a time. Because
// only one thread runs at a time, it is known when each call began and ended, and the promise can be checked literally: the
// ledger gets every event once, in an order in which each takes effect at one instant within its call.
#include <catch2/catch_test_macros.hpp>

#include <integration/stepped_event_path.hpp>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace memprof_tests::integration_scheduled_steps {

using memprof::detail::path_step;

namespace {

/// One thread of a schedule and what it is doing.
struct producer {
  stepped::thread worker;
  memprof::detail::thread_slot* context = nullptr;
  bool is_recording = false;
  bool is_in_call = false;
  std::uint64_t call = 0;
};

/// How a schedule goes on.
struct temper {
  unsigned threads;
  std::uint32_t ring_capacity;
  unsigned switch_percent;    ///< chance that the next step is another thread's
  unsigned snapshot_percent;  ///< of calls
  unsigned exit_percent;
};

class schedule {
 public:
  stepped::event_path path;  // outlives the threads, which hold claims in its rings

  schedule(std::uint64_t seed, const temper& how) : path(how.ring_capacity), random_(seed), temper_(how) {
    for (unsigned count = 0; count < how.threads; ++count) {
      producers_.push_back(std::make_unique<producer>());
      producers_.back()->context = &path.new_context();
    }
  }

  void run(unsigned steps) {
    std::size_t turn = 0;
    for (unsigned step = 0; step < steps; ++step) {
      if (chance(temper_.switch_percent)) turn = random_() % producers_.size();
      if (!advance(*producers_[turn])) turn = random_() % producers_.size();
    }
    // Whoever holds the lock goes first; then nobody can be in another's way.
    for (const auto& each : producers_) {
      if (holds_lock(*each)) finish(*each);
    }
    for (const auto& each : producers_) finish(*each);
    for (int round = 0; round < 2; ++round) producers_[0]->worker.run(path.snapshot(*producers_[0]->context));
  }

 private:
  bool chance(unsigned percent) { return random_() % 100 < percent; }

  static bool holds_lock(const producer& each) {
    if (!each.is_in_call) return false;
    switch (each.worker.at()) {
      case path_step::word_read:
      case path_step::slot_written:
      case path_step::published: return false;
      default: return true;
    }
  }
  [[nodiscard]] bool is_locked() const {
    for (const auto& each : producers_) {
      if (holds_lock(*each)) return true;
    }
    return false;
  }

  /// One step of a thread; false if it would wait for the lock.
  bool advance(producer& self) {
    if (self.is_in_call) {
      self.worker.resume();
      note_end(self);
      return true;
    }
    const bool takes_snapshot = chance(temper_.snapshot_percent);
    const bool exits = !takes_snapshot && chance(temper_.exit_percent);
    const memprof::detail::event_ring& ring = *self.context->ring;
    const bool needs_lock = takes_snapshot || exits || !self.context->has_ring() || ring.cursor >= ring.limit;
    if (needs_lock && is_locked()) return false;
    if (takes_snapshot) {
      self.worker.start(path.snapshot(*self.context));
    } else if (exits) {
      self.worker.run(path.exit_thread(*self.context));
      if (chance(50)) self.context = &path.new_context();
      return true;
    } else {
      self.is_recording = true;
      self.call = path.begin_call();
      self.worker.start(path.record(*self.context, self.call));
    }
    self.is_in_call = true;
    note_end(self);
    return true;
  }

  void note_end(producer& self) {
    ++path.time;
    if (self.worker.is_standing()) return;
    if (self.is_recording) path.end_call(self.call);
    self.is_recording = self.is_in_call = false;
  }

  void finish(producer& self) {
    while (self.is_in_call) {
      self.worker.resume();
      note_end(self);
    }
  }

  std::mt19937_64 random_;
  temper temper_;
  std::vector<std::unique_ptr<producer>> producers_;
};

struct totals {
  std::uint64_t calls = 0;
  std::uint64_t drains = 0;
  std::uint64_t grants = 0;
  std::uint64_t revocations = 0;
  std::uint64_t without_stamp = 0;
};

totals run_schedules(const temper& how, unsigned schedules, unsigned steps) {
  totals sum;
  for (std::uint64_t seed = 1; seed <= schedules; ++seed) {
    schedule one{seed, how};
    one.run(steps);
    INFO("seed " << seed << ", threads " << how.threads << ", ring capacity " << how.ring_capacity);
    REQUIRE(one.path.is_in_a_possible_order());
    sum.calls += one.path.calls.size();
    sum.drains += one.path.shared.drains;
    sum.grants += one.path.shared.grants;
    sum.revocations += one.path.shared.revocations.load();
    for (const memprof::extend::event& event : one.path.drained.events) sum.without_stamp += event.stamp == 0;
  }
  return sum;
}

bool can_grant() {
  memprof::registry shared;
  memprof::detail::prepare_order(shared);
  return shared.can_grant;
}

}  // namespace

TEST_CASE("event path: two threads that alternate at every step come in a possible order") {
  const totals sum = run_schedules({2, 3, 50, 5, 0}, 150, 300);
  CHECK(sum.calls > 1'000);
  CHECK(sum.revocations > 0);
}

TEST_CASE("event path: bursts of one thread get and lose the order word, and the order stays possible") {
  const totals sum = run_schedules({2, 4, 4, 6, 0}, 150, 500);
  CHECK(sum.without_stamp > 1'000);
  if (can_grant()) CHECK(sum.grants > 100);
  CHECK(sum.revocations > 100);
}

TEST_CASE("event path: four threads in bursts with tiny rings come in a possible order") {
  const totals sum = run_schedules({4, 2, 10, 4, 0}, 100, 600);
  CHECK(sum.drains > 1'000);
  if (can_grant()) CHECK(sum.grants > 20);
}

TEST_CASE("event path: threads that exit, record after their exit and are followed by new ones lose nothing") {
  const totals sum = run_schedules({3, 5, 10, 4, 4}, 150, 500);
  CHECK(sum.calls > 1'000);
}

}  // namespace memprof_tests::integration_scheduled_steps
