// The protocol of record/event_order.hpp in a model of C++'s memory, of which every execution is visited. Stepped threads
// synchronize at every step and so hide the faults that it finds, and x86 hides one of them.
//
// Memory: each location keeps all values that were stored in it, and each thread knows how far it has seen them. A load may
// return any value not older than what its thread has seen; a release store carries what its thread has seen, which an acquire
// load of it takes over; an exchange takes the newest. So a store that waits in its core's buffer is one that others have not
// seen, and a process-wide barrier shows every store to every thread. The clock is an exchange that releases and acquires: that
// is what `stamp_source` does where there is no time stamp counter, and a counter that runs alike on all cores gives no more.
// What nothing orders may be done early: a reading of the clock before a relaxed load, loads before the reading of a clock that
// is no access to memory.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace memprof_tests::record_order_model {

namespace {

enum class removed { nothing, barrier_in_grant_order, acquire_in_record_idle, fence_in_drain_rings };

enum location : std::size_t { order_word, doing, clock_word, hand_over, head_a, head_b, locations };
enum word : std::uint8_t { owned_before = 1, owned_again, pending, shared };  // the owner is always thread B
enum activity : std::uint8_t { idle, recording };
enum actor : std::size_t { a, b, drain, actors };

/// How many stores to each location a thread has seen.
using sight = std::array<std::uint8_t, locations>;

struct store {
  std::uint8_t value = 0;
  sight carried{};
};

/// A thread: where it stands in its program, and its registers.
struct thread_state {
  std::uint8_t step = 0;
  std::uint8_t word = 0;
  std::uint8_t ring_word = 0;
  std::uint8_t early_stamp = 0;
  std::uint8_t until = 0;       ///< drain: its reading of the clock
  std::uint8_t read_heads = 0;  ///< drain: which heads were read, a bit each
  std::uint8_t heads[2] = {};   ///< drain
  std::uint8_t is_quiet = 1;    ///< drain
  sight seen{};
};

/// Stamps of the events: A's allocation, B's first event and B's free of A's block; 0: none.
enum event_number : std::size_t { allocation, before, release, events };

/// Plain bytes, so that a state that was visited is found by them.
struct state {
  static constexpr std::size_t max_stores = 8;
  std::array<std::array<store, max_stores>, locations> memory{};
  std::array<std::uint8_t, locations> count{};
  std::array<thread_state, actors> threads{};
  std::array<std::uint8_t, events> stamps{};
  std::uint8_t stamp_before_all = 0;  ///< of B's last event before those of the model

  [[nodiscard]] std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(alignof(state) == 1);

void join(sight& into, const sight& other) {
  for (std::size_t at = 0; at < locations; ++at) into[at] = std::max(into[at], other[at]);
}

void put(state& now, actor who, location at, std::uint8_t value, bool releases, const sight& also = {}) {
  sight& seen = now.threads[who].seen;
  const std::uint8_t index = now.count[at]++;
  if (index >= state::max_stores) throw std::length_error("the model has room for fewer stores");
  seen[at] = index;
  store& made = now.memory[at][index];
  made.value = value;
  made.carried = also;
  if (releases) join(made.carried, seen);
  made.carried[at] = index;
}

/// Every value that a load may return, each with the state after it.
template <class Then>
void load(const state& now, actor who, location at, bool acquires, const Then& then) {
  for (std::uint8_t index = now.threads[who].seen[at]; index < now.count[at]; ++index) {
    state after = now;
    const store& found = now.memory[at][index];
    after.threads[who].seen[at] = index;
    if (acquires) join(after.threads[who].seen, found.carried);
    then(after, found.value);
  }
}

/// An exchange of the newest value; acquires and releases.
std::uint8_t exchange(state& now, actor who, location at, std::uint8_t value) {
  const store newest = now.memory[at][now.count[at] - 1U];
  join(now.threads[who].seen, newest.carried);
  put(now, who, at, value, true, newest.carried);
  return newest.value;
}

bool compare_exchange(state& now, actor who, location at, std::uint8_t& expected, std::uint8_t value) {
  const store newest = now.memory[at][now.count[at] - 1U];
  if (newest.value == expected) {
    exchange(now, who, at, value);
    return true;
  }
  now.threads[who].seen[at] = static_cast<std::uint8_t>(now.count[at] - 1U);
  join(now.threads[who].seen, newest.carried);
  expected = newest.value;
  return false;
}

std::uint8_t read_clock(state& now, actor who) {
  const auto stamp = static_cast<std::uint8_t>(now.memory[clock_word][now.count[clock_word] - 1U].value + 1);
  exchange(now, who, clock_word, stamp);
  return stamp;
}

class model {
 public:
  explicit model(removed without, word at_first) : without_(without) {
    state first;
    for (std::size_t at = 0; at < locations; ++at) first.count[at] = 1;
    first.memory[order_word][0].value = at_first;
    first.memory[clock_word][0].value = 1;
    first.stamp_before_all = 1;
    if (at_first == owned_before) first.threads[b].ring_word = owned_before;
    waiting_.push_back(first);
    while (!waiting_.empty()) {
      const state now = waiting_.back();
      waiting_.pop_back();
      bool has_ended = true;
      for (const actor who : {a, b, drain}) has_ended = !advance(now, who) && has_ended;
      if (has_ended) judge(now);
    }
  }

  std::size_t executions_ended = 0;
  std::size_t frees_without_stamp = 0;
  std::size_t grants = 0;
  std::size_t frees_before_their_allocation = 0;

 private:
  void reach(const state& after) {
    if (visited_.insert(after.bytes()).second) waiting_.push_back(after);
  }

  /// All that a thread may do next; false if its program has ended.
  bool advance(const state& now, actor who) {
    if (who == a) return advance_a(now);
    if (who == b) return advance_b(now);
    return advance_drain(now);
  }

  // --- `record_idle`, `record_stamped`, `claim_order` -------------------------------------------------------------

  /// The three steps from `first` on, which read the word, claim it and take a stamp; the step after them publishes.
  void record(const state& now, actor who, std::uint8_t first, event_number event) {
    const thread_state& self = now.threads[who];
    const bool acquires = without_ != removed::acquire_in_record_idle;
    state after = now;
    thread_state& next = after.threads[who];
    if (self.step == first) {
      // const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);
      load(now, who, order_word, acquires, [&](state& read, std::uint8_t value) {
        thread_state& reader = read.threads[who];
        reader.word = value;
        // if (word != ring.order_word) return record_stamped(...);
        reader.step = static_cast<std::uint8_t>(first + (value == reader.ring_word ? 3 : 1));
        reach(read);
      });
      if (!acquires && self.early_stamp == 0) {
        next.early_stamp = read_clock(after, who);
        reach(after);
      }
    } else if (self.step == first + 1) {
      if (self.word == shared) {
        next.step = static_cast<std::uint8_t>(first + 2);
      } else if (who == b && (self.word == owned_before || self.word == owned_again)) {
        next.ring_word = self.word;  // if (order_owner(word) == own_id) ring.order_word = word;
        next.step = static_cast<std::uint8_t>(first + 2);
      } else {
        std::uint8_t expected = self.word;  // shared.order_word.compare_exchange_weak(word, wanted, acq_rel, acquire)
        next.word = compare_exchange(after, who, order_word, expected, shared) ? std::uint8_t{shared} : expected;
      }
      reach(after);
    } else {
      after.stamps[event] = self.early_stamp != 0 ? self.early_stamp : read_clock(after, who);  // shared.stamps.next()
      next.step = static_cast<std::uint8_t>(first + 3);
      reach(after);
    }
  }

  /// A records an allocation and then hands the block to B.
  bool advance_a(const state& now) {
    const std::uint8_t step = now.threads[a].step;
    if (step >= 1 && step <= 3) {
      record(now, a, 1, allocation);
      return true;
    }
    state after = now;
    ++after.threads[a].step;
    if (step == 0) put(after, a, doing, recording, false);  // ring.doing.store(activity::recording, relaxed)
    if (step == 4) put(after, a, head_a, 1, true);          // ring.slots->published.store(slot + 1, release)
    if (step == 5) put(after, a, doing, idle, true);        // ring.doing.store(activity::idle, release)
    if (step == 6) put(after, a, hand_over, 1, true);
    if (step > 6) return false;
    reach(after);
    return true;
  }

  /// B records an event, and frees the block if it has got it. Its `doing` is left out: the drain does not look at that of the
  /// thread to which it gives the word.
  bool advance_b(const state& now) {
    const std::uint8_t step = now.threads[b].step;
    state after = now;
    thread_state& next = after.threads[b];
    if (step <= 2) {
      record(now, b, 0, before);
    } else if (step == 3) {
      put(after, b, head_b, 1, true);
      next.early_stamp = 0;
      next.step = 4;
      reach(after);
    } else if (step == 4) {
      load(now, b, hand_over, true, [&](state& read, std::uint8_t has_block) {
        read.threads[b].step = has_block != 0 ? 5 : ended;
        reach(read);
      });
    } else if (step <= 7) {
      record(now, b, 5, release);
    } else if (step == 8) {
      put(after, b, head_b, 2, true);
      next.step = ended;
      reach(after);
    } else {
      return false;
    }
    return true;
  }

  // --- `drain_rings`, `grant_order` -------------------------------------------------------------------------------

  bool advance_drain(const state& now) {
    const thread_state& self = now.threads[drain];
    const bool is_fenced = without_ != removed::fence_in_drain_rings;
    state after = now;
    thread_state& next = after.threads[drain];
    if (self.step == 0) {
      next.until = read_clock(after, drain);  // const std::uint64_t until = shared.stamps.next();
      next.step = 1;
      reach(after);
      if (!is_fenced) read_head(now);  // __builtin_ia32_lfence();
    } else if (self.step == 1 && self.read_heads != 3) {
      read_head(now);
    } else if (self.step == 1) {
      next.step = 2;
      next.word = shared;
      std::uint8_t expected = shared;  // order_word.compare_exchange_strong(word, order_pending, acq_rel, relaxed)
      if (!compare_exchange(after, drain, order_word, expected, pending)) next.step = ended;
      reach(after);
    } else if (self.step == 2) {
      // bool is_quiet = process_barrier();
      if (without_ != removed::barrier_in_grant_order) {
        sight all{};
        for (const thread_state& each : now.threads) join(all, each.seen);
        for (thread_state& each : after.threads) each.seen = all;
      }
      next.step = 3;
      reach(after);
    } else if (self.step == 3) {
      // ring.doing.load(std::memory_order_acquire) != activity::recording
      load(now, drain, doing, true, [&](state& read, std::uint8_t activity) {
        read.threads[drain].is_quiet = activity == recording ? 0 : 1;
        read.threads[drain].step = 4;
        reach(read);
      });
    } else if (self.step == 4) {
      std::uint8_t expected = pending;  // order_word.compare_exchange_strong(word, wanted, acq_rel, relaxed)
      if (compare_exchange(after, drain, order_word, expected, self.is_quiet != 0 ? owned_again : shared) && self.is_quiet != 0)
        ++grants;
      next.step = ended;
      reach(after);
    } else {
      return false;
    }
    return true;
  }

  /// ring->slots->published.load(std::memory_order_acquire), of A's ring or of B's.
  void read_head(const state& now) {
    for (const unsigned ring : {0U, 1U}) {
      if ((now.threads[drain].read_heads >> ring & 1U) != 0) continue;
      load(now, drain, ring == 0 ? head_a : head_b, true, [&](state& read, std::uint8_t published) {
        thread_state& reader = read.threads[drain];
        reader.read_heads = static_cast<std::uint8_t>(reader.read_heads | 1U << ring);
        reader.heads[ring] = published;
        reach(read);
      });
    }
  }

  // --- what the ledger gets ---------------------------------------------------------------------------------------

  /// A second drain, which sees everything, follows. Within a drain events come by stamp, and one without a stamp with its
  /// predecessor (`pending_key`).
  void judge(const state& last) {
    ++executions_ended;
    if (last.threads[a].step <= 6 || last.memory[head_b][last.count[head_b] - 1U].value != 2) return;  // nothing was freed
    if (last.stamps[release] == 0) ++frees_without_stamp;
    const thread_state& first_drain = last.threads[drain];
    const std::uint8_t key_of_before = last.stamps[before] != 0 ? last.stamps[before] : last.stamp_before_all;
    const std::uint8_t key_of_release = last.stamps[release] != 0 ? last.stamps[release] : key_of_before;
    // `trim_to`: what is later than the drain's clock reading is left to the next.
    const bool allocation_is_first = first_drain.heads[0] == 1 && last.stamps[allocation] <= first_drain.until;
    const bool release_is_first = first_drain.heads[1] == 2 && key_of_release <= first_drain.until;
    const bool is_in_order =
        allocation_is_first == release_is_first ? last.stamps[allocation] < key_of_release : allocation_is_first;
    if (!is_in_order) ++frees_before_their_allocation;
  }

  static constexpr std::uint8_t ended = 20;
  removed without_;
  std::vector<state> waiting_;
  std::unordered_set<std::string> visited_;
};

std::string text_of(const std::string& header) {
  std::string path = MEMPROF_SOURCE_DIR;
  path += "/include/memprof/record/";  // += as GCC 12 warns of + where the folder's name is short
  path += header;
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("order model: no execution frees a block before its allocation") {
  for (const word at_first : {shared, owned_before}) {
    const model whole{removed::nothing, at_first};
    CHECK(whole.frees_before_their_allocation == 0);
    // It reaches what it is about: the word is given back, and frees leave out their stamp.
    CHECK(whole.executions_ended > 100);
    CHECK(whole.grants > 0);
    CHECK(whole.frees_without_stamp > 0);
  }
}

TEST_CASE("order model: without the barrier in grant_order a free overtakes its allocation") {
  CHECK(model(removed::barrier_in_grant_order, shared).frees_before_their_allocation > 0);
}

TEST_CASE("order model: without the acquire in record_idle a free overtakes its allocation") {
  CHECK(model(removed::acquire_in_record_idle, shared).frees_before_their_allocation > 0);
}

TEST_CASE("order model: without the fence in drain_rings a free overtakes its allocation") {
  CHECK(model(removed::fence_in_drain_rings, shared).frees_before_their_allocation > 0);
}

TEST_CASE("order model: the headers have what the model shows to be needed") {
  CHECK(has(text_of("event_order.hpp"), "bool is_quiet = process_barrier();"));
  CHECK(has(text_of("event_order.hpp"), "ring.doing.load(std::memory_order_acquire) != activity::recording"));
  CHECK(has(text_of("drain.hpp"),
            "const std::uint64_t until = shared.stamps.next();\n"
            "#if defined(__x86_64__)\n"
            "  __builtin_ia32_lfence();"));
  CHECK(has(text_of("recorder.hpp"), "const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);"));
}

}  // namespace memprof_tests::record_order_model
