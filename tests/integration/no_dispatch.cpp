#include <memprof/memprof.hpp>

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/trace/fact_table.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#if defined(__unix__)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#endif

namespace memprof_tests::integration_no_dispatch {

namespace {

using memprof::run_mode;

/// A random program over the resource API: the same for the same seed, whatever memory stands behind its blocks.
memprof::profile run_program(run_mode mode, std::uint64_t seed) {
  struct block {
    void* address;
    std::size_t bytes;
    std::size_t alignment;
    memprof::memory_resource* from;
  };
  memprof::memory_resource dram{"dram"};
  memprof::memory_resource sram{"sram"};
  const char* const names[] = {"embedding", "attention", "feed_forward", "loss"};
  const char* const segments[] = {"FORWARD_PASS", "BACKWARD_PASS", "OPTIMIZER_STEP"};
  std::mt19937_64 random{seed};
  std::vector<block> blocks;
  const auto free_one = [&](std::size_t index) {
    blocks[index].from->deallocate(blocks[index].address, blocks[index].bytes, blocks[index].alignment);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
  };

  auto capture = memprof::begin_capture({.mode = mode});
  for (int step = 0; step < 120; ++step) {
    const auto scope = memprof::track_operation(names[random() % 4], static_cast<memprof::category>(random() % 8));
    for (std::uint64_t turn = random() % 6; turn > 0; --turn) {
      if (!blocks.empty() && random() % 5 < 2) {
        free_one(random() % blocks.size());
        continue;
      }
      memprof::memory_resource& from = random() % 3 == 0 ? sram : dram;
      const std::size_t bytes = random() % 9 == 0 ? 0 : random() % 100'000;
      const std::size_t alignment = std::size_t{1} << (random() % 9);
      blocks.push_back({from.allocate(bytes, alignment), bytes, alignment, &from});
      if (random() % 4 == 0) {
        memprof::annotate(blocks.back().address,
                          {.name = names[random() % 4], .shape = "[2, 3]", .dtype = "float32", .category = {}});
      }
    }
    if (random() % 12 == 0) memprof::snapshot(segments[random() % 3]);
  }
  capture.end();
  const memprof::profile result = capture.profile();
  while (!blocks.empty()) free_one(0);
  return result;
}

/// Takes out what two runs of one program may differ in: addresses and times.
memprof::profile without_addresses_and_times(memprof::profile profile) {
  profile.mode = run_mode::normal;
  profile.begin_unix_ns = profile.duration_ns = 0;
  profile.cost = {};
  for (auto& segment : profile.segments) segment.begin_ns = segment.end_ns = 0;
  for (auto& row : profile.segments_by_name) row.duration_ns = {};
  const auto clean = [](memprof::live_set& set) {
    for (auto& block : set.largest_blocks) block.address = 0;
  };
  for (auto& operation : profile.operations) {
    for (auto& usage : operation.usage) {
      for (auto* run : {&usage.first_invocation, &usage.last_invocation, &usage.largest_invocation})
        run->begin_ns = run->end_ns = 0;
    }
  }
  for (auto& space : profile.spaces) {
    space.peak_time_ns = 0;
    clean(space.live_at_peak);
    for (auto& usage : space.segments) {
      usage.peak_time_ns = 0;
      clean(usage.live_at_peak);
    }
    for (auto& point : space.timeline.points) point.time_ns = 0;
  }
  for (auto& memory : profile.memories) {
    memory.peak_time_ns = 0;
    clean(memory.live_at_peak);
  }
  for (auto& at : profile.checkpoints) at.time_ns = 0;
  erase_if(profile.facts, [](const memprof::fact_table& table) { return table.name == memprof::process_memory::table; });
  return profile;
}

}  // namespace

TEST_CASE("no_dispatch: random programs have the same profile as when they really allocate") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const memprof::profile real = run_program(run_mode::normal, seed);
    const memprof::profile simulated = run_program(run_mode::no_dispatch, seed);
    INFO("seed " << seed);
    REQUIRE(real.mode == run_mode::normal);
    REQUIRE(simulated.mode == run_mode::no_dispatch);
    REQUIRE(real.space("dram").allocation_count > 20);
    REQUIRE(without_addresses_and_times(real) == without_addresses_and_times(simulated));
  }
}

TEST_CASE("no_dispatch: only such a capture switches dispatching off, and only until it ends") {
  CHECK(memprof::dispatching());
  {
    auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch});
    CHECK_FALSE(memprof::dispatching());
  }
  CHECK(memprof::dispatching());
  auto capture = memprof::begin_capture();
  CHECK(memprof::dispatching());
}

TEST_CASE("no_dispatch: a block from before the capture goes back to its upstream and is counted as an unmatched free") {
  memprof::memory_resource memory{"dram"};
  void* const before = memory.allocate(100);
  auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch});
  void* const within = memory.allocate(50);
  memory.deallocate(before, 100);  // the address sanitizer would report it as leaked, or freed twice
  capture.end();
  const auto& space = capture.profile().space("dram");
  CHECK(space.anomalies.unmatched_frees == memprof::event_tally{1, 100});
  CHECK(space.cumulative_current == 50);
  memory.deallocate(within, 50);  // after the capture, and still not the upstream's
  void* const after = memory.allocate(8);
  *static_cast<char*>(after) = 1;  // real again
  memory.deallocate(after, 8);
}

#if defined(__unix__)

namespace {

std::int64_t resident_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("no_dispatch: terabytes cost the process nothing") {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("a sanitizer's own memory would be measured");
#endif
  memprof::memory_resource memory{"dram"};
  const std::int64_t before = resident_kib();
  auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch});
  constexpr std::size_t bytes = std::size_t{1} << 30;
  std::vector<void*> blocks;
  for (int step = 0; step < 20; ++step) {
    for (int block = 0; block < 2048; ++block) blocks.push_back(memory.allocate(bytes));
    for (void* block : blocks) memory.deallocate(block, bytes);
    blocks.clear();
  }
  capture.end();
  CHECK(capture.profile().space("dram").cumulative_peak == std::int64_t{2048} * bytes);
  CHECK(capture.profile().space("dram").allocations == std::int64_t{20} * 2048 * bytes);
  CHECK(resident_kib() - before < 64 * 1024);
}

TEST_CASE("no_dispatch: touching memory that was only counted faults, with a message that says so") {
  int channel[2];
  REQUIRE(::pipe(channel) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(channel[1], STDERR_FILENO);
    std::signal(SIGSEGV, SIG_DFL);  // not the test runner's
    rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    memprof::memory_resource memory{"dram"};
    auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch});
    *static_cast<volatile char*>(memory.allocate(16)) = 1;
    ::_exit(0);
  }
  ::close(channel[1]);
  std::string printed;
  char buffer[512];
  for (ssize_t count = 0; (count = ::read(channel[0], buffer, sizeof buffer)) > 0;) {
    printed.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(channel[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((!WIFEXITED(status) || WEXITSTATUS(status) != 0));
  CHECK(printed.find("NO_DISPATCH capture only counted") != std::string::npos);
  CHECK(printed.find("memprof::dispatching()") != std::string::npos);
}

#endif

}  // namespace memprof_tests::integration_no_dispatch
