#include "clock.hpp"

#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

constexpr std::size_t events_per_run = 1024;  // what one drain delivers

/// Training steps in operations: the same blocks at the same addresses, one in twenty with another size than in the previous
/// step, and a timestamp every 16 events, as in a capture.
std::vector<memprof::extend::event> record_training() {
  constexpr std::size_t steps = 1000;
  constexpr std::uint64_t blocks = 1000;
  std::mt19937_64 random{1};
  std::vector<std::uint64_t> sizes(blocks);
  for (std::uint64_t& size : sizes) size = 16 * (1 + random() % 4096);
  std::vector<memprof::extend::event> events;
  std::uint64_t stamp = 1;
  std::uint32_t number = 0;
  const auto put = [&](memprof::extend::event made) {
    if (events.size() % 16 == 0) made.stamp = stamp += 100 + random() % 400;
    events.push_back(made);
  };
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const auto name = static_cast<std::uint32_t>(1 + block / 20 % 12);
      if (block % 20 == 0)
        put({0, memprof::detail::scope_address(++number, 0), 0, name, memprof::extend::event_kind::scope_begin,
             memprof::extend::any_space, 0});
      if (random() % 20 == 0) sizes[block] = 16 * (1 + random() % 4096);
      put({0, (std::uint64_t{1} << 40) + block * 65536, sizes[block], 0, memprof::extend::event_kind::allocate, 0, 0});
      if (block % 20 == 19)
        put({0, memprof::detail::scope_address(number, 0), 0, name, memprof::extend::event_kind::scope_end,
             memprof::extend::any_space, 0});
    }
    for (std::uint64_t block = blocks; block-- != 0;) {
      put({0, (std::uint64_t{1} << 40) + block * 65536, 0, 0, memprof::extend::event_kind::deallocate, 0, 0});
    }
  }
  return events;
}

const std::vector<memprof::extend::event>& training() {
  static const std::vector<memprof::extend::event> recorded = record_training();
  return recorded;
}

void put(memprof::trace& target, const std::vector<memprof::extend::event>& events) {
  for (std::size_t first = 0; first < events.size(); first += events_per_run) {
    const std::size_t last = std::min(first + events_per_run, events.size());
    target.events(events.data() + first, events.data() + last, 1);
  }
}

void encode(benchmark::State& state) {
  const std::vector<memprof::extend::event>& recorded = training();
  for (auto iteration : state) {
    memprof::trace stored;
    const double begin = thread_seconds();
    put(stored, recorded);
    state.SetIterationTime(thread_seconds() - begin);
    if (stored.size() != recorded.size()) state.SkipWithError("the trace lost events");
    state.counters["bytes_per_event"] = static_cast<double>(stored.encoded_bytes()) / static_cast<double>(stored.size());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * recorded.size()));
}

void fold(benchmark::State& state) {
  const std::vector<memprof::extend::event>& recorded = training();
  memprof::trace stored;
  put(stored, recorded);
  for (auto iteration : state) {
    memprof::extend::trace_fold folded;
    const double begin = thread_seconds();
    stored.visit(folded);
    state.SetIterationTime(thread_seconds() - begin);
    if (folded.events().events() != recorded.size()) state.SkipWithError("the trace lost events");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * recorded.size()));
}

BENCHMARK(encode)->Name("trace/encode")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(fold)->Name("trace/fold")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
