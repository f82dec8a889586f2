// Captures with a device: what limits which memory space, in both run modes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/trace/device_presets.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::integration_capacity {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::device_description;
using memprof::run_mode;

namespace {

constexpr std::size_t kib = 1024;

device_description small_device() {
  device_description device;
  device.name = "small";
  device.add({.name = "dram", .capacity = 100 * kib});
  device.add({.name = "l1", .capacity = 1 * kib, .is_per_core = true});
  device.add({.name = "unlimited"});
  device.add({.name = "never used", .capacity = 1 * kib});
  return device;
}

/// Holds 60 KiB of parameters and 30 KiB of activations when 20 KiB more are asked for.
memprof::profile train(const memprof::capture_options& options) {
  memprof::memory_resource dram{"dram"};
  memprof::memory_resource l1{"l1"};
  memprof::memory_resource unlimited{"unlimited"};
  memprof::memory_resource host{"host"};
  struct block {
    memprof::memory_resource& from;
    std::size_t bytes;
    void* address;
  };
  std::vector<block> blocks;
  const auto allocate = [&](memprof::memory_resource& from, std::size_t bytes) {
    blocks.push_back({from, bytes, from.allocate(bytes)});
  };
  auto capture = memprof::begin_capture(options);
  {
    auto scope = memprof::track_operation<"model">(memprof::category::parameter);
    allocate(dram, 60 * kib);
  }
  memprof::snapshot("MODEL_CREATION");
  {
    auto scope = memprof::track_operation<"forward">(memprof::category::activation);
    for (memprof::memory_resource* from : {&l1, &unlimited, &host}) allocate(*from, 500 * kib);
    allocate(dram, 30 * kib);
    allocate(dram, 20 * kib);
    allocate(dram, 40 * kib);
  }
  memprof::snapshot("FORWARD_PASS");
  capture.end();
  const memprof::profile result = capture.profile();
  for (const block& each : blocks) each.from.deallocate(each.address, each.bytes);
  return result;
}

void check_shortfall(const memprof::profile& made) {
  CHECK(made.device == "small");
  const memprof::space_profile& dram = made.space("dram");
  CHECK(dram.capacity == 100 * kib);
  CHECK(dram.cumulative_peak == 150 * kib);
  const memprof::capacity_shortfall& full = dram.first_shortfall;
  CHECK(full.requested == 20 * kib);
  CHECK(full.free == 10 * kib);
  CHECK(full.shortfall == 10 * kib);
  CHECK(full.operation == "forward");
  CHECK(full.category == memprof::category::activation);
  CHECK(full.segment == 1);
  CHECK(full.held.by_operation == memprof::vector<memprof::owned_bytes>{{"model", 60 * kib, 1}, {"forward", 30 * kib, 1}});
  CHECK(full.remedy == memprof::vector<memprof::owned_bytes>{{"forward", 30 * kib, 1}});
}

}  // namespace

TEST_CASE("capacity: a device limits the memory spaces of its names, in both run modes") {
  check_shortfall(train({.device = small_device()}));
  check_shortfall(train({.mode = run_mode::no_dispatch, .device = small_device()}));
}

TEST_CASE("capacity: spaces that the device does not limit have none, and unused ones are not there") {
  const memprof::profile made = train({.device = small_device()});
  for (const char* name : {"unlimited", "host"}) {
    CHECK(made.space(name).capacity == 0);
    CHECK(made.space(name).first_shortfall == memprof::capacity_shortfall{});
  }
  CHECK(made.find_space("never used") == nullptr);
}

TEST_CASE("capacity: that of each core is not compared with blocks without cores") {
  const memprof::profile made = train({.device = small_device()});
  CHECK(made.space("l1").capacity == 1 * kib);
  CHECK(made.space("l1").capacity_is_per_core);
  CHECK(made.space("l1").cumulative_peak == 500 * kib);
  CHECK(made.space("l1").first_shortfall == memprof::capacity_shortfall{});
  CHECK(!made.space("dram").capacity_is_per_core);
  CHECK_THAT(memprof::to_text(made, {.primary_space = "l1", .columns = 300}),
             ContainsSubstring("per-core fit unknown: each core has 1.00 KiB"));
}

// What tt-metal refuses as "Statically allocated circular buffers ... clash with L1 buffers": both fit a core, their sum does
// not.
TEST_CASE("capacity: circular buffers that leave a core of a preset no room for its buffers name the core") {
  const memprof::extend::event_sink sink;
  const memprof::memory_space l1{"l1"};
  const auto at = [](std::uint64_t address) { return reinterpret_cast<const void*>(address); };
  for (const run_mode mode : {run_mode::normal, run_mode::no_dispatch}) {
    auto capture = memprof::begin_capture({.mode = mode, .device = memprof::device_preset("wormhole-12gb")});
    {
      auto scope = memprof::track_operation<"model">(memprof::category::parameter);
      sink.allocate_on_cores(l1, at(0x100000), 369'440, {0, 0, 7, 7});
      sink.allocate_on_cores(l1, at(0x80000), 1'000, {3, 1, 3, 1});
    }
    capture.snapshot("MODEL_CREATION");
    {
      auto scope = memprof::track_operation<"matmul">();
      sink.allocate_on_cores(l1, at(0x1B400), 600'000, {0, 0, 1, 1}, memprof::extend::buffer_kind::circular_buffer);
      sink.deallocate_circular_buffers(l1);
      sink.allocate_on_cores(l1, at(0x1B400), 1'000'000, {2, 0, 3, 1}, memprof::extend::buffer_kind::circular_buffer);
    }
    capture.end();
    const memprof::space_profile& space = capture.profile().space("l1");
    CHECK(space.capacity == 1'369'440);
    CHECK(space.capacity_is_per_core);
    CHECK(space.cores.peaks == memprof::core_peaks{1'000'000, 370'440, 1'370'440, "3-1"});
    const memprof::capacity_shortfall& full = space.first_shortfall;
    CHECK(full.core == "3-1");
    CHECK(full.requested == 1'000'000);
    CHECK(full.operation == "matmul");
    CHECK(full.segment == 1);
    CHECK(full.free == 999'000);
    CHECK(full.shortfall == 1'000);
    CHECK(full.held.by_operation == memprof::vector<memprof::owned_bytes>{{"model", 370'440, 2}});
    CHECK(full.held.by_category == memprof::vector<memprof::owned_bytes>{{"parameter", 370'440, 2}});
    CHECK(full.remedy == memprof::vector<memprof::owned_bytes>{{"model", 370'440, 2}});
    CHECK_THAT(memprof::to_text(capture.profile(), {.primary_space = "l1", .columns = 300}),
               ContainsSubstring(" requested on core 3-1 at"));
  }
}

TEST_CASE("capacity: without a device nothing is limited, also after a capture that had one") {
  train({.device = small_device()});
  const memprof::profile made = train({});
  CHECK(made.device.empty());
  CHECK(made.space("dram").capacity == 0);
  CHECK(made.space("dram").first_shortfall == memprof::capacity_shortfall{});
}

TEST_CASE("capacity: a tensor of 128 GiB does not fit a preset, and nothing is allocated to find that out") {
  memprof::memory_resource memory{"cuda:0"};
  auto capture = memprof::begin_capture({.mode = run_mode::no_dispatch, .device = memprof::device_preset("gpu-24gb")});
  const std::size_t bytes = std::size_t{1} << 37;
  memory.deallocate(memory.allocate(bytes), bytes);
  capture.end();
  const memprof::capacity_shortfall full = capture.profile().space("cuda:0").first_shortfall;
  CHECK(full.requested == std::int64_t{1} << 37);
  CHECK(full.free == std::int64_t{24'207} << 20);
  CHECK(full.remedy.empty());
  CHECK_THAT(memprof::to_text(capture.profile(), {.columns = 300}),
             ContainsSubstring("does not fit gpu-24gb: 128 GiB requested"));
}

TEST_CASE("capacity: the text of a captured profile counts what was allocated outside every operation") {
  memprof::memory_resource memory{"dram"};
  auto capture = memprof::begin_capture({.device = small_device()});
  void* const outside = memory.allocate(64 * kib);
  void* inside = nullptr;
  {
    auto scope = memprof::track_operation<"forward">();
    inside = memory.allocate(32 * kib);
    memory.deallocate(memory.allocate(16 * kib), 16 * kib);
  }
  capture.end();
  const std::string text = memprof::to_text(capture.profile(), {.columns = 300, .largest_blocks = 1});
  CHECK_THAT(text, ContainsSubstring("64.0 KiB  57.1 %   1 block  outside every operation"));
  CHECK_THAT(text, ContainsSubstring("48.0 KiB  42.9 %  2 blocks  forward"));
  CHECK_THAT(text, ContainsSubstring("At end"));
  CHECK_THAT(text, ContainsSubstring("64.0 KiB  66.7 %  outside every operation"));
  CHECK_THAT(text, ContainsSubstring("12.0 KiB"));  // 16 KiB requested of 100 KiB with 96 live
  memory.deallocate(inside, 32 * kib);
  memory.deallocate(outside, 64 * kib);
}

TEST_CASE("capacity: a negative one is refused by name, and no capture begins") {
  device_description device = small_device();
  device.spaces[2].capacity = -1;
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.device = device}), memprof::error,
                       MessageMatches(ContainsSubstring("'unlimited' of device 'small' is -1")));
  check_shortfall(train({.device = small_device()}));
}

TEST_CASE("capacity: a device whose spaces the process has no names left for is refused, and no capture begins") {
  const auto fill_table = [] {
    for (int number = 0; number < 300; ++number) (void)memprof::memory_space{"space " + std::to_string(number)};
  };
  CHECK_NOTHROW(fill_table());  // those beyond the last share one
  device_description device;
  device.name = "late";
  device.add({.name = "one too many", .capacity = 1});
  CHECK_THROWS_MATCHES((void)memprof::begin_capture({.device = device}), memprof::error,
                       MessageMatches(ContainsSubstring("'one too many'")));
  const auto capture = memprof::begin_capture();
  CHECK(memprof::current_profile().spaces.empty());
}

}  // namespace memprof_tests::integration_capacity
