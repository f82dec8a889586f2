#include "clock.hpp"

#include <memprof/memprof.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

namespace {

/// An address that was never mapped: the profiler does not access memory at addresses.
const void* block_at(std::uint64_t index) { return reinterpret_cast<const void*>((std::uint64_t{1} << 40) + index * 64); }

/// One snapshot with `state.range(0)` live blocks of 100 operations, after a step that allocated and freed a little.
void snapshot(benchmark::State& state) {
  const auto blocks = static_cast<std::uint64_t>(state.range(0));
  constexpr std::uint64_t operations = 100;
  constexpr std::uint64_t blocks_of_step = 200;
  auto capture = memprof::begin_capture();
  const memprof::memory_space space{"cpu"};
  const memprof::extend::event_sink sink;
  for (std::uint64_t operation = 0; operation < operations; ++operation) {
    auto scope = memprof::track_operation("layer_" + std::to_string(operation));
    for (std::uint64_t index = operation; index < blocks; index += operations) sink.allocate(space, block_at(index), 48);
  }
  capture.snapshot("MODEL_CREATION");

  for (auto iteration : state) {
    for (std::uint64_t index = 0; index < blocks_of_step; ++index) sink.allocate(space, block_at(blocks + index), 48);
    for (std::uint64_t index = 0; index < blocks_of_step; ++index) sink.deallocate(space, block_at(blocks + index), 48);
    const double begin = thread_seconds();
    capture.snapshot("FORWARD_PASS");
    state.SetIterationTime(thread_seconds() - begin);
  }
}

BENCHMARK(snapshot)->Arg(1'000)->Arg(1'000'000)->UseManualTime()->Iterations(200)->Unit(benchmark::kMicrosecond);

}  // namespace
