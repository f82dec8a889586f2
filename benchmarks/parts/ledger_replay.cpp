#include "clock.hpp"

#include <memprof/ledger/ledger.hpp>
#include <memprof/trace/event.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t live_blocks = 100'000;
constexpr std::size_t replayed_events = 2'000'000;
constexpr std::size_t events_per_run = 1024;  // what one drain delivers

/// The events that build up the ledger's live set, followed by those to measure.
struct recording {
  std::vector<memprof::extend::event> before;
  std::vector<memprof::extend::event> measured;
};

memprof::extend::event allocation(std::uint64_t address, std::uint64_t bytes) {
  return {0, address, bytes, 0, memprof::extend::event_kind::allocate, 0, 0};
}
memprof::extend::event deallocation(std::uint64_t address) {
  return {0, address, 0, 0, memprof::extend::event_kind::deallocate, 0, 0};
}

std::uint64_t random_size(std::mt19937_64& random) { return 16 * (1 + random() % 256); }

/// Like a training step: bursts of allocations, freed in reverse order, at the top of a stack of blocks.
recording record_like_a_stack() {
  std::mt19937_64 random{1};
  recording result;
  std::vector<memprof::extend::event> stack;
  std::uint64_t top = std::uint64_t{1} << 40;
  const auto push = [&](std::vector<memprof::extend::event>& events) {
    stack.push_back(allocation(top, random_size(random)));
    top += stack.back().bytes;
    events.push_back(stack.back());
  };
  while (stack.size() < live_blocks) push(result.before);
  while (result.measured.size() < replayed_events) {
    const std::size_t burst = 1 + random() % 64;
    for (std::size_t count = 0; count < burst; ++count) {
      top -= stack.back().bytes;
      result.measured.push_back(deallocation(stack.back().address));
      stack.pop_back();
    }
    for (std::size_t count = 0; count < burst; ++count) push(result.measured);
  }
  return result;
}

/// Frees blocks and takes free addresses in random order.
recording record_at_random() {
  std::mt19937_64 random{1};
  recording result;
  std::vector<std::uint64_t> live;
  std::vector<std::uint64_t> vacant;
  const auto take_random = [&](std::vector<std::uint64_t>& from) {
    std::swap(from[random() % from.size()], from.back());
    const std::uint64_t address = from.back();
    from.pop_back();
    return address;
  };
  for (std::uint64_t index = 0; index < 2 * live_blocks; ++index) vacant.push_back((std::uint64_t{1} << 40) + index * 4096);
  const auto allocate = [&](std::vector<memprof::extend::event>& events) {
    live.push_back(take_random(vacant));
    events.push_back(allocation(live.back(), random_size(random)));
  };
  while (live.size() < live_blocks) allocate(result.before);
  while (result.measured.size() < replayed_events) {
    const std::uint64_t freed = take_random(live);
    result.measured.push_back(deallocation(freed));
    allocate(result.measured);
    vacant.push_back(freed);
  }
  return result;
}

void apply(memprof::extend::ledger& ledger, const std::vector<memprof::extend::event>& events) {
  for (std::size_t first = 0; first < events.size(); first += events_per_run) {
    const std::size_t last = std::min(first + events_per_run, events.size());
    ledger.apply(events.data() + first, events.data() + last, 1);
  }
}

void replay(benchmark::State& state, const recording& recorded) {
  for (auto iteration : state) {
    memprof::extend::ledger ledger;
    apply(ledger, recorded.before);
    const double begin = thread_seconds();
    apply(ledger, recorded.measured);
    state.SetIterationTime(thread_seconds() - begin);
    if (ledger.space(0)->blocks().size() != live_blocks) state.SkipWithError("the replay lost blocks");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * recorded.measured.size()));
}

void replay_like_a_stack(benchmark::State& state) {
  static const recording recorded = record_like_a_stack();
  replay(state, recorded);
}

void replay_at_random(benchmark::State& state) {
  static const recording recorded = record_at_random();
  replay(state, recorded);
}

BENCHMARK(replay_like_a_stack)->Name("ledger_replay/lifo_like")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(replay_at_random)->Name("ledger_replay/random")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
