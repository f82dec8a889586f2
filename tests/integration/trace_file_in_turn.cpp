// Captures with a trace file that begin and end on several threads in turn, while others allocate: the rings of these move into
// each file and out of it again, under stores that may be on their way.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_trace_file_in_turn {

namespace {

constexpr int turns = 20;
constexpr int controllers = 3;
constexpr int recorders = 4;

}  // namespace

TEST_CASE("trace file: captures begin and end on several threads in turn while others allocate") {
  const memprof_tests::scratch_folder folder;
  const memprof::memory_space space{"dram"};
  const memprof::extend::event_sink sink;
  memprof::detail::watcher = nullptr;
  std::atomic<bool> is_over{false};

  std::vector<std::thread> recording;
  for (int index = 0; index < recorders; ++index) {
    recording.emplace_back([&, index] {
      // Each block is freed before the next: no capture ever sees more than one for each thread.
      for (std::uint64_t block = 1; !is_over.load(std::memory_order_relaxed); ++block) {
        const auto* const address =
            reinterpret_cast<const void*>((static_cast<std::uint64_t>(index) << 40) + block % 1024 * 64 + 64);
        auto scope = memprof::track_operation<"step">();
        sink.allocate(space, address, 100);
        sink.deallocate(space, address, 100);
      }
    });
  }

  std::mutex turn;  // of who has a capture; Catch's checks are made under it too
  std::vector<std::thread> controlling;
  for (int index = 0; index < controllers; ++index) {
    controlling.emplace_back([&, index] {
      const std::string file = folder.file("run" + std::to_string(index) + ".memtrace");
      for (int round = 0; round < turns; ++round) {
        const std::lock_guard<std::mutex> own{turn};
        auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file});
        for (int pause = 0; pause < 20; ++pause) std::this_thread::yield();
        capture.end();
        const memprof::profile live = capture.profile();
        memprof::profile read = memprof::profile_of(file);
        read.cost = live.cost;
        const memprof::space_profile* const dram = live.find_space("dram");
        const std::int64_t peak = dram == nullptr ? 0 : dram->cumulative_peak;
        if (peak > recorders * 100 || !live.exact || read != live) {
          CHECK(peak <= recorders * 100);
          CHECK(live.exact);
          CHECK(read == live);
        }
      }
    });
  }
  for (std::thread& each : controlling) each.join();
  is_over = true;
  for (std::thread& each : recording) each.join();
  SUCCEED();
}

}  // namespace memprof_tests::integration_trace_file_in_turn
