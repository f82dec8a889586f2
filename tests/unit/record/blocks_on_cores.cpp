#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace memprof_tests::record_blocks_on_cores {

namespace {

using memprof::core_peaks;
using memprof::extend::buffer_kind;
using memprof::extend::core_range;

[[nodiscard]] const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

/// What the backend of a device tells of one program: where its circular buffers are, and a tensor that lives on.
struct device_backend {
  static constexpr std::string_view name = "device";
  void attach(memprof::extend::event_sink& writer, const memprof::capture_options&) {
    writer.allocate_on_cores(l1, at(0x100000), 2048, {0, 0, 7, 7}, buffer_kind::buffer, memprof::category::parameter);
  }
  void detach(memprof::extend::event_sink& writer) noexcept {
    writer.deallocate_circular_buffers(l1);
    writer.deallocate_on_cores(l1, at(0x100000), {0, 0, 7, 7}, 2048);
  }
  void report_facts(memprof::extend::event_sink&) {}

  memprof::memory_space l1{"l1"};
};

}  // namespace

TEST_CASE("blocks on cores: what a backend tells of them is in the profile") {
  auto capture = memprof::begin_capture<device_backend>();
  const memprof::extend::event_sink sink;
  const memprof::memory_space l1{"l1"};
  sink.allocate_on_cores(l1, at(0x1B400), 4096, {0, 0, 1, 1}, buffer_kind::circular_buffer, memprof::category::temporary);
  sink.allocate_on_cores(l1, at(0x1B400), 1024, {2, 0, 3, 1}, buffer_kind::circular_buffer);
  capture.snapshot("PROGRAM");
  sink.deallocate_circular_buffers(l1, {0, 0, 0, 0});
  capture.snapshot("NEXT");
  capture.end();
  const memprof::space_profile& space = capture.profile().space("l1");
  CHECK(space.cores.segments ==
        memprof::vector<core_peaks>{{4096, 2048, 6144, "0-0"}, {4096, 2048, 6144, "0-0"}, {1024, 2048, 3072, "2-0"}});
  CHECK(space.cores.peaks == core_peaks{4096, 2048, 6144, "0-0"});
  CHECK(space.cumulative_peak == 64 * 2048 + 4 * 4096 + 4 * 1024);
  CHECK(space.cumulative_current == 0);
  CHECK(space.anomalies == memprof::space_anomalies{});
  CHECK(space.live_at_peak.by_category.size() == 3);
  CHECK(memprof::to_text(capture.profile(), {.format = memprof::text_format::tracker}).find("--- PROGRAM ---\n") !=
        std::string::npos);
  CHECK(memprof::to_text(capture.profile(), {.format = memprof::text_format::tracker})
            .find("  L1: Peak CB 0.00 MB, Peak Buffer 0.00 MB, Peak Total 0.01 MB\n") != std::string::npos);
}

TEST_CASE("blocks on cores: threads tell those of their own cores, and the sum over cores is exact") {
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  std::vector<std::thread> threads;
  for (std::uint8_t column = 0; column < 4; ++column) {
    threads.emplace_back([column] {
      const memprof::extend::event_sink sink;
      const memprof::memory_space l1{"l1"};
      const core_range cores{column, 0, column, 3};
      for (int program = 0; program < 500; ++program) {
        sink.deallocate_circular_buffers(l1, cores);
        sink.allocate_on_cores(l1, at(0x1000), 100U + column, cores, buffer_kind::circular_buffer);
        sink.allocate_on_cores(l1, at(0x2000), 10, cores);
        sink.deallocate_on_cores(l1, at(0x2000), cores, 10);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  capture.end();
  const memprof::space_profile& space = capture.profile().space("l1");
  CHECK(space.cores.peaks == core_peaks{103, 10, 113, "3-0"});
  CHECK(space.cumulative_current == 4 * (100 + 101 + 102 + 103));
  CHECK(space.allocation_count == 4 * 500 * 2);
  CHECK(space.cores.ranges.size() == 4);
  CHECK(space.anomalies == memprof::space_anomalies{});
  CHECK(capture.profile().exact);
}

}  // namespace memprof_tests::record_blocks_on_cores
