// The merge of the rings' events, against a stable sort.
#include <catch2/catch_test_macros.hpp>

#include <memprof/record/drain.hpp>
#include <memprof/trace/event.hpp>
#include <property/random_sequence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memprof_tests::record_drain {

namespace {

using memprof::detail::event_ring;
using memprof::detail::ordered_event;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::property::random_numbers;

/// An event's ring and its number in it.
using place = std::pair<std::uint32_t, std::uint64_t>;

/// Takes whole runs, as a trace file does.
struct consumer_of_runs {
  std::vector<place> seen;
  std::size_t calls = 0;

  void apply(const event* first, const event* last, std::uint32_t ring) noexcept {
    ++calls;
    for (; first != last; ++first) seen.emplace_back(ring, first->address);
  }
};

/// Takes events of several rings at a time, too, as the ledger does.
struct consumer_of_batches : consumer_of_runs {
  using consumer_of_runs::apply;
  void apply(const ordered_event* first, const ordered_event* last) noexcept {
    ++calls;
    for (; first != last; ++first) seen.emplace_back(first->ring, first->recorded->address);
  }
};

/// Rings with pending events. Stamps differ, so that there is one right order; events without one follow their predecessor.
class filled_rings {
 public:
  /// Each ring gets some of the next events in turn, at most `longest_run`; `unstamped` of ten have no stamp.
  filled_rings(random_numbers& random, std::uint32_t count, std::size_t events, std::size_t longest_run,
               std::uint64_t unstamped) {
    for (std::uint32_t id = 1; id <= count; ++id) {
      event_ring& ring = *rings_.emplace_back(std::make_unique<event_ring>());
      ring.id = id;
      ring.last_stamp = id;  // of events drained before
    }
    pending_.resize(count);
    std::uint64_t stamp = count;
    std::size_t made = 0;
    const auto put = [&](std::size_t on, std::uint64_t with_stamp) {
      pending_[on].push_back({with_stamp, pending_[on].size(), 0, 0, event_kind::allocate, 0, 0});
      ++made;
    };
    for (std::size_t on = 0; on < count; ++on) put(on, random.below(10) < unstamped ? 0 : ++stamp);
    while (made < events) {
      const auto on = static_cast<std::size_t>(random.below(count));
      for (std::uint64_t run = random.below(longest_run) + 1; run != 0; --run)
        put(on, random.below(10) < unstamped ? 0 : ++stamp);
    }
    for (std::size_t on = 0; on < count; ++on) {
      rings_[on]->tail = pending_[on].data();
      rings_[on]->drain_limit = pending_[on].data() + pending_[on].size();
    }
  }

  [[nodiscard]] std::vector<place> sorted() const {
    std::vector<std::pair<std::uint64_t, place>> by_stamp;
    for (std::size_t on = 0; on < rings_.size(); ++on) {
      std::uint64_t stamp = rings_[on]->last_stamp;
      for (const event& each : pending_[on]) {
        if (each.stamp != 0) stamp = each.stamp;
        by_stamp.push_back({stamp, {rings_[on]->id, each.address}});
      }
    }
    std::stable_sort(by_stamp.begin(), by_stamp.end(),
                     [](const auto& left, const auto& right) { return left.first < right.first; });
    std::vector<place> result;
    for (const auto& [stamp, at] : by_stamp) result.push_back(at);
    return result;
  }

  template <class Consumer>
  void merge(Consumer& consumer) {
    std::vector<event_ring*> heap;
    for (const std::unique_ptr<event_ring>& ring : rings_) heap.push_back(ring.get());
    if (heap.size() == 1) return memprof::detail::apply_run(*heap[0], heap[0]->drain_limit, consumer);
    memprof::detail::merge_rings<memprof::detail::no_pauses>(heap.data(), static_cast<std::uint32_t>(heap.size()), consumer);
  }

  /// Each ring is empty, and knows how many it has given and its last stamp.
  void require_drained() const {
    for (std::size_t on = 0; on < rings_.size(); ++on) {
      std::uint64_t last_stamp = on + 1;
      for (const event& each : pending_[on]) last_stamp = each.stamp != 0 ? each.stamp : last_stamp;
      REQUIRE(rings_[on]->tail == rings_[on]->drain_limit);
      REQUIRE(rings_[on]->drained == pending_[on].size());
      REQUIRE(rings_[on]->last_stamp == last_stamp);
    }
  }

 private:
  std::vector<std::unique_ptr<event_ring>> rings_;
  std::vector<std::vector<event>> pending_;
};

}  // namespace

TEST_CASE("drain: events of any number of rings come in the order of their stamps") {
  random_numbers random{11};
  for (const std::uint32_t rings : {1U, 2U, 3U, 4U, 7U, 64U}) {
    for (int round = 0; round < 60; ++round) {
      const std::size_t events = rings + random.below(1000);  // a batch has 128
      const std::size_t longest_run = std::size_t{1} << random.below(9);
      const std::uint64_t unstamped = random.below(10);
      INFO(rings << " rings, " << events << " events, runs of " << longest_run << ", without a stamp: " << unstamped << " of 10");
      random_numbers same = random;
      filled_rings for_runs{random, rings, events, longest_run, unstamped};
      filled_rings for_batches{same, rings, events, longest_run, unstamped};
      const std::vector<place> expected = for_runs.sorted();
      consumer_of_runs runs;
      for_runs.merge(runs);
      REQUIRE(runs.seen == expected);
      for_runs.require_drained();
      consumer_of_batches batches;
      for_batches.merge(batches);
      REQUIRE(batches.seen == expected);
      for_batches.require_drained();
      // Batches, and what the last ring still has, instead of runs.
      REQUIRE(batches.calls <= expected.size() / 128 + 3);
    }
  }
}

TEST_CASE("drain: of events with the same stamp, those of one ring keep their order") {
  std::vector<event> pending[2];
  event_ring rings[2];
  event_ring* heap[2];
  for (std::uint32_t on = 0; on < 2; ++on) {
    for (std::uint64_t number = 0; number < 300; ++number) pending[on].push_back({5, number, 0, 0, event_kind::allocate, 0, 0});
    rings[on].id = on + 1;
    rings[on].tail = pending[on].data();
    rings[on].drain_limit = pending[on].data() + pending[on].size();
    heap[on] = &rings[on];
  }
  consumer_of_batches consumer;
  memprof::detail::merge_rings<memprof::detail::no_pauses>(heap, 2, consumer);
  REQUIRE(consumer.seen.size() == 600);
  std::uint64_t next[2] = {};
  for (const auto& [ring, number] : consumer.seen) REQUIRE(number == next[ring - 1]++);
}

}  // namespace memprof_tests::record_drain
