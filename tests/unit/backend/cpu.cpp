#include <catch2/catch_test_macros.hpp>

#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>
#include <vector>

namespace memprof_tests::backend_cpu {

namespace {

struct alignment_probe : std::pmr::memory_resource {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  std::size_t deallocations = 0;
  alignas(64) std::byte storage[256];

  void* do_allocate(std::size_t wanted_bytes, std::size_t wanted_alignment) override {
    bytes = wanted_bytes;
    alignment = wanted_alignment;
    return storage;
  }
  void do_deallocate(void*, std::size_t, std::size_t) override { ++deallocations; }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

TEST_CASE("memory_resource: it passes size and alignment to its upstream and records the size") {
  alignment_probe upstream;
  memprof::memory_resource memory{"probe", &upstream};
  auto capture = memprof::begin_capture();
  void* const address = memory.allocate(100, 64);
  memory.deallocate(address, 100, 64);
  capture.end();
  CHECK(address == upstream.storage);
  CHECK(upstream.bytes == 100);
  CHECK(upstream.alignment == 64);
  CHECK(upstream.deallocations == 1);
  CHECK(memory.upstream_resource() == &upstream);
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("probe").cumulative_peak == 100);
  CHECK(profile.find_space("cpu") == nullptr);
}

TEST_CASE("memory_resource: two of one space count together, and are not equal") {
  memprof::memory_resource first{"together"};
  memprof::memory_resource second{"together"};
  CHECK(first == first);
  CHECK(first != second);
  auto capture = memprof::begin_capture();
  std::pmr::vector<char> one(100, &first);
  std::pmr::vector<char> other(10, &second);
  capture.end();
  CHECK(capture.profile().space("together").cumulative_current == 110);
}

TEST_CASE("memory_resource: one above another counts each block in the spaces of both") {
  memprof::memory_resource lower{"lower"};
  memprof::memory_resource upper{"upper", &lower};
  auto capture = memprof::begin_capture();
  upper.deallocate(upper.allocate(100), 100);
  capture.end();
  CHECK(capture.profile().space("upper").cumulative_peak == 100);
  CHECK(capture.profile().space("lower").cumulative_peak == 100);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

TEST_CASE("allocator: standard containers of any type record in the space cpu") {
  auto capture = memprof::begin_capture();
  {
    std::vector<float, memprof::allocator<float>> values(1000);
    using pair = std::pair<const int, double>;
    std::unordered_map<int, double, std::hash<int>, std::equal_to<>, memprof::allocator<pair>> table;
    for (int key = 0; key < 100; ++key) table[key] = key;
  }
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  CHECK(cpu.cumulative_peak > 4000);
  CHECK(cpu.cumulative_current == 0);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
  CHECK(memprof::allocator<int>{} == memprof::allocator<double>{});
}

TEST_CASE("allocator: a type that wants more than the default alignment gets it") {
  struct alignas(256) wide {
    char bytes[256];
  };
  auto capture = memprof::begin_capture();
  std::vector<wide, memprof::allocator<wide>> values(3);
  CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % 256 == 0);
  capture.end();
  CHECK(capture.profile().space("cpu").cumulative_current == 768);
}

}  // namespace memprof_tests::backend_cpu
