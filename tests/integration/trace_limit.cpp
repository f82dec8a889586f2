// A capture whose trace may take so many bytes: the newest events stay, and the profile of the trace is the capture's.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/trace/trace_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_trace_limit {

namespace {

/// Steps of a training on two threads: blocks that stay, blocks that go, operations, annotations.
void train(int steps) {
  memprof::memory_resource memory{"cpu"};
  std::vector<void*> kept;
  for (int step = 0; step < steps; ++step) {
    const auto outer = memprof::track_operation<"step">();
    std::thread other{[&] {
      const auto scope = memprof::track_operation<"loader">(memprof::category::input);
      void* const batch = memory.allocate(4096);
      memory.deallocate(batch, 4096);
    }};
    for (int layer = 0; layer < 50; ++layer) {
      const auto scope = memprof::track_operation<"layer">(memprof::category::activation);
      void* const block = memory.allocate(static_cast<std::size_t>(64 * (layer + 1)));
      if (layer == step % 50) {
        memprof::annotate(block, {.name = "kept " + std::to_string(step % 7)});
        kept.push_back(block);
      } else {
        memory.deallocate(block, static_cast<std::size_t>(64 * (layer + 1)));
      }
    }
    other.join();
    if (step % 100 == 99) memprof::snapshot("STEPS");
  }
  // Those that are live at the end were allocated all over the run.
  for (std::size_t index = 0; index < kept.size(); index += 2) memory.deallocate(kept[index], 64 * (index % 50 + 1));
  memprof::snapshot("FREED");
  for (std::size_t index = 1; index < kept.size(); index += 2) memory.deallocate(kept[index], 64 * (index % 50 + 1));
}

}  // namespace

TEST_CASE("trace limit: the newest events are kept, and the profile is that of the whole capture") {
  constexpr std::uint64_t limit = std::uint64_t{128} * 1024;
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events, .trace_limit = limit});
  train(1000);
  capture.end();
  CHECK(events.dropped() > 50'000);
  CHECK(events.size() > 10'000);
  memprof::profile live = capture.profile();  // compares both by itself, as with every capture of the tests
  live.cost = {};
  CHECK(live.exact);
  CHECK(live.anomalies.missing_events == 0);
  const memprof::profile replayed = memprof::profile_of(events);
  CHECK(replayed == live);

  // What an allocator has to give at the end is the same, and no free is without its allocation.
  memprof::allocation_sequence sequence{"cpu"};
  events.visit(sequence);
  CHECK(sequence.unmatched_frees() == 0);
  std::int64_t left = 0;
  std::vector<std::uint64_t> sizes(sequence.block_count());
  for (const memprof::allocation_step& step : sequence.steps()) {
    left += step.bytes != 0 ? static_cast<std::int64_t>(step.bytes) : -static_cast<std::int64_t>(sizes[step.block]);
    sizes[step.block] = step.bytes;
  }
  CHECK(left == live.space("cpu").cumulative_current);

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("memprof_limit_" + std::to_string(getpid()) + ".memtrace");
  memprof::write_trace(events, path);
  CHECK(memprof::profile_of(path) == live);
  const std::uintmax_t size = std::filesystem::file_size(path);
  std::filesystem::remove(path);
  CHECK(size > limit / 2);
  CHECK(size < 2 * limit);
}

TEST_CASE("trace limit: a trace below it is whole") {
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events, .trace_limit = std::uint64_t{1} << 30U});
  train(20);
  capture.end();
  CHECK(events.dropped() == 0);
  memprof::profile live = capture.profile();
  live.cost = {};
  CHECK(memprof::profile_of(events) == live);
}

TEST_CASE("trace limit: one that is too small is refused") {
  memprof::trace events;
  CHECK_THROWS_WITH(
      (void)memprof::begin_capture({.trace = &events, .trace_limit = 65'535}),
      "begin_capture: capture_options::trace_limit is 65535; use 65536 bytes or more, or 0 for no limit (the default)");
}

}  // namespace memprof_tests::integration_trace_limit
