#include "clock.hpp"

#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

/// An address that was never mapped: the profiler does not access memory at addresses.
const void* block_at(std::uint64_t index) { return reinterpret_cast<const void*>((std::uint64_t{1} << 40) + index * 64); }

/// Training runs of `state.range(0)` steps with three phases and thirty operations: the cost of the last tenth of the steps, the
/// profiler's memory after the first thousand steps and at the end, the time for the profile, and its size as JSON.
void long_run(benchmark::State& state) {
  constexpr const char* phases[] = {"FORWARD_PASS", "BACKWARD_PASS", "OPTIMIZER_STEP"};
  std::vector<std::string> names;
  for (int operation = 0; operation < 30; ++operation) names.push_back("operation_" + std::to_string(operation));
  const auto steps = static_cast<std::uint64_t>(state.range(0));
  const memprof::memory_space space{"cpu"};
  const memprof::extend::event_sink sink;
  for (auto iteration : state) {
    auto capture = memprof::begin_capture();
    const auto run = [&](std::uint64_t count) {
      const double begin = thread_seconds();
      for (std::uint64_t step = 0; step < count; ++step) {
        for (std::uint64_t phase = 0; phase < 3; ++phase) {
          for (std::uint64_t operation = 10 * phase; operation < 10 * phase + 10; ++operation) {
            auto scope = memprof::track_operation(names[operation]);
            sink.allocate(space, block_at(operation), 1000 + operation);
          }
          if (phase == 2) {
            for (std::uint64_t operation = 0; operation < 30; ++operation) sink.deallocate(space, block_at(operation));
          }
          capture.snapshot(phases[phase]);
        }
      }
      return (thread_seconds() - begin) / static_cast<double>(count);
    };
    (void)run(1000);
    state.counters["bytes_after_1000_steps"] = static_cast<double>(capture.profile().cost.memory_bytes);
    state.counters["first_step_us"] = run(steps / 10) * 1e6;
    (void)run(steps - 2 * (steps / 10) - 1000);
    const double last = run(steps / 10);
    state.counters["last_step_us"] = last * 1e6;
    const double begin = thread_seconds();
    const memprof::profile profile = capture.profile();
    state.counters["profile_ms"] = (thread_seconds() - begin) * 1e3;
    state.counters["bytes_at_the_end"] = static_cast<double>(profile.cost.memory_bytes);
    state.counters["json_bytes"] = static_cast<double>(memprof::to_json_text(profile).size());
    state.SetIterationTime(last);
  }
}

BENCHMARK(long_run)->Arg(10'000)->Arg(1'000'000)->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);

}  // namespace
