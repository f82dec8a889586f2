// Programs that allocate on CUDA, with the runtime that has no device.
#include "runtime_calls.hpp"

#include <stderr_of.hpp>

#include <memprof/backend/cuda.hpp>
#include <memprof/backend/cuda_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/trace/device_presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace memprof_tests::cuda_no_dispatch {

namespace {

using Catch::Matchers::ContainsSubstring;
using memprof::cuda_no_dispatch;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int invalid_configuration = 9;
constexpr int invalid_symbol = 13;
constexpr int no_device = 100;
constexpr int invalid_device = 101;
constexpr int invalid_resource_handle = 400;
constexpr int by_default = 4;  // cudaMemcpyDefault

void* allocate(std::size_t bytes) {
  void* address = nullptr;
  REQUIRE(cudaMalloc(&address, bytes) == success);
  REQUIRE(address != nullptr);
  return address;
}
void* allocate_on(void* stream, std::size_t bytes) {
  void* address = nullptr;
  REQUIRE(cudaMallocAsync(&address, bytes, stream) == success);
  return address;
}
void* make_stream() {
  void* stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == success);
  return stream;
}

memprof::device_description devices_of(std::size_t first, std::size_t second) {
  memprof::device_description made;
  made.name = "two";
  made.add({.name = "cuda:0", .capacity = static_cast<std::int64_t>(first)});
  made.add({.name = "cuda:1", .capacity = static_cast<std::int64_t>(second)});
  return made;
}

std::uint64_t attribute_of(void* pool, int attribute) {
  std::uint64_t value = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, attribute, &value) == success);
  return value;
}
constexpr int used_now = 7;
constexpr int used_high = 8;

void do_nothing() {}

}  // namespace

TEST_CASE("cuda without dispatch: a training step of 100 GB is recorded on a machine that has neither") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  CHECK_FALSE(memprof::dispatching());
  void* const stream = make_stream();
  constexpr std::size_t gib = std::size_t{1} << 30;
  void* const weights = allocate(60 * gib);
  memprof::annotate(weights, {.name = "weights", .category = memprof::category::parameter});
  memprof::snapshot("MODEL_CREATION");
  for (int step = 0; step < 3; ++step) {
    auto scope = memprof::track_operation<"forward">();
    void* const activations = allocate_on(stream, 40 * gib);
    REQUIRE(cudaMemset(activations, 0, 40 * gib) == success);
    REQUIRE(cudaLaunchKernel(reinterpret_cast<const void*>(&do_nothing), {80, 1, 1}, {256, 1, 1}, nullptr, 0, stream) == success);
    REQUIRE(cudaFreeAsync(activations, stream) == success);
  }
  REQUIRE(cudaStreamSynchronize(stream) == success);
  REQUIRE(cudaFree(weights) == success);
  REQUIRE(cudaStreamDestroy(stream) == success);
  capture.end();
  CHECK(memprof::dispatching());
  const memprof::profile profile = capture.profile();
  CHECK(profile.mode == memprof::run_mode::no_dispatch);
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == std::int64_t{100} * gib);
  CHECK(space.peak_operation == "forward");
  CHECK(space.cumulative_current == 0);
  CHECK(space.allocation_count == 4);
  CHECK(space.active.peak == std::int64_t{40} * gib);  // the stream reuses at once what was freed on it
  CHECK(space.active.missing_completions.count == 0);
  CHECK(profile.exact);
}

TEST_CASE("cuda without dispatch: each call counts in the space, and with the bytes, of the backend for a real device") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(0, 0)});
  void* pitched_rows = nullptr;
  std::size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&pitched_rows, &pitch, 1000, 10) == success);
  CHECK(pitch == 1024);
  pitched volume{};
  REQUIRE(cudaMalloc3D(&volume, {100, 20, 30}) == success);
  CHECK(volume.pitch == 512);
  CHECK(volume.height == 20);
  memprof::snapshot("PITCHED");
  const channels four_floats{32, 32, 32, 32, 2};
  void* plane = nullptr;
  REQUIRE(cudaMallocArray(&plane, &four_floats, 64, 32, 0) == success);
  void* layers = nullptr;
  REQUIRE(cudaMalloc3DArray(&layers, &four_floats, {8, 8, 4}, 0) == success);
  void* levels = nullptr;
  REQUIRE(cudaMallocMipmappedArray(&levels, &four_floats, {8, 8, 0}, 3, 0) == success);
  void* sparse = nullptr;
  REQUIRE(cudaMallocArray(&sparse, &four_floats, 64, 32, 0x40) == success);
  memprof::snapshot("ARRAYS");
  void* managed = nullptr;
  REQUIRE(cudaMallocManaged(&managed, 3 * mib, 1) == success);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 5 * kib) == success);
  void* mapped = nullptr;
  REQUIRE(cudaHostAlloc(&mapped, 7 * kib, 2) == success);
  REQUIRE(cudaSetDevice(1) == success);
  void* const on_second = allocate(2 * mib);
  REQUIRE(cudaSetDevice(0) == success);

  CHECK(cudaFree(pitched_rows) == success);
  CHECK(cudaFree(volume.address) == success);
  CHECK(cudaFree(plane) == invalid_value);
  CHECK(cudaFreeArray(plane) == success);
  CHECK(cudaFreeArray(layers) == success);
  CHECK(cudaFreeArray(sparse) == success);
  CHECK(cudaFreeMipmappedArray(levels) == success);
  CHECK(cudaFreeHost(managed) == invalid_value);
  CHECK(cudaFree(managed) == success);
  CHECK(cudaFreeHost(pinned) == success);
  CHECK(cudaFreeHost(mapped) == success);
  CHECK(cudaFree(on_second) == success);
  CHECK(cudaGetLastError() == invalid_value);
  CHECK(cudaGetLastError() == success);
  capture.end();

  const memprof::profile profile = capture.profile();
  const memprof::space_profile& first = profile.space("cuda:0");
  constexpr std::int64_t rows = 10 * 1024 + 20 * 30 * 512;
  constexpr std::int64_t arrays = 64 * 32 * 16 + 8 * 8 * 4 * 16 + (8 * 8 + 4 * 4 + 2 * 2) * 16;
  CHECK(first.segments[0].cumulative_peak == rows);
  CHECK(first.cumulative_peak == rows + arrays);
  CHECK(profile.space("cuda:0 managed").cumulative_peak == 3 * mib);
  CHECK(profile.space("pinned").cumulative_peak == 12 * kib);
  CHECK(profile.space("cuda:1").cumulative_peak == 2 * mib);
  for (const memprof::space_profile& space : profile.spaces) {
    CHECK(space.cumulative_current == 0);
    CHECK(space.anomalies.unmatched_frees.count == 0);
  }
}

TEST_CASE("cuda without dispatch: a device that is full refuses, which is recorded, and the program goes on") {
  const memprof::device_description card = memprof::device_preset("gpu-24gb");
  const auto capacity = static_cast<std::size_t>(card.spaces[0].capacity);
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = card});
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == success);
  CHECK(free == capacity);
  CHECK(total == capacity);
  void* const most = allocate(capacity - 1025);  // takes 512 bytes more than are needed for two blocks of 512
  REQUIRE(cudaMemGetInfo(&free, &total) == success);
  CHECK(free == 1024);
  void* address = most;
  {
    auto scope = memprof::track_operation<"too_much">();
    CHECK(cudaMalloc(&address, 1025) == out_of_memory);
  }
  CHECK(address == nullptr);
  CHECK(cudaPeekAtLastError() == out_of_memory);
  CHECK(cudaGetLastError() == out_of_memory);
  CHECK(cudaMallocAsync(&address, std::size_t{1} << 60, nullptr) == out_of_memory);
  CHECK(cudaFree(allocate(1024)) == success);
  CHECK(cudaFree(most) == success);
  CHECK(cudaFree(allocate(capacity)) == success);
  capture.end();
  const memprof::space_profile space = capture.profile().space("cuda:0");
  CHECK(space.cumulative_peak == static_cast<std::int64_t>(capacity));
  REQUIRE(space.out_of_memory.size() == 2);
  CHECK(space.out_of_memory[0].requested == 1025);
  CHECK(space.out_of_memory[0].device_free == 1024);
  CHECK(space.out_of_memory[0].operation == "too_much");
}

TEST_CASE("cuda without dispatch: what was freed on a stream is pending until the host waits, or the device is full") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(10 * mib, mib)});
  void* const first = make_stream();
  void* const second = make_stream();
  void* pool = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0) == success);
  std::uint64_t zero = 0;
  REQUIRE(cudaMemPoolSetAttribute(pool, used_high, &zero) == success);  // to what is used
  void* const block = allocate_on(first, 4 * mib);
  REQUIRE(cudaFreeAsync(block, first) == success);
  CHECK(attribute_of(pool, used_now) == 4 * mib);
  void* const of_other_stream = allocate_on(second, 4 * mib);
  CHECK(of_other_stream != block);
  CHECK(attribute_of(pool, used_now) == 8 * mib);
  memprof::snapshot("ON_TWO_STREAMS");
  void* const again = allocate_on(first, 4 * mib);
  CHECK(again == block);
  REQUIRE(cudaFreeAsync(again, first) == success);
  memprof::snapshot("REUSED");
  REQUIRE(cudaStreamSynchronize(second) == success);
  CHECK(attribute_of(pool, used_now) == 8 * mib);
  REQUIRE(cudaStreamSynchronize(first) == success);
  CHECK(attribute_of(pool, used_now) == 4 * mib);
  REQUIRE(cudaFreeAsync(of_other_stream, second) == success);
  void* const whole = allocate(10 * mib);  // waits for the stream
  CHECK(attribute_of(pool, used_now) == 0);
  CHECK(attribute_of(pool, used_high) == 8 * mib);
  REQUIRE(cudaMemPoolSetAttribute(pool, used_high, &zero) == success);
  CHECK(attribute_of(pool, used_high) == 0);
  REQUIRE(cudaFree(whole) == success);
  capture.end();
  const memprof::space_profile space = capture.profile().space("cuda:0");
  CHECK(space.cumulative_peak == 10 * mib);
  CHECK(space.active.peak == 8 * mib);  // of blocks on streams
  CHECK(space.active.current == 0);
  REQUIRE(space.streams.size() == 2);
  CHECK(space.streams[0].cumulative_peak == 4 * mib);
  CHECK(space.streams[1].cumulative_peak == 4 * mib);
  CHECK(space.out_of_memory.empty());
  CHECK(cudaStreamDestroy(first) == success);
  CHECK(cudaStreamDestroy(second) == success);
}

TEST_CASE("cuda without dispatch: the null stream is that of all threads or of each, as nvcc was told") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  void* const legacy = allocate_on(nullptr, mib);
  void* own = nullptr;
  REQUIRE(cudaMallocAsync_ptsz(&own, 2 * mib, nullptr) == success);
  REQUIRE(cudaFreeAsync(legacy, nullptr) == success);
  REQUIRE(cudaFreeAsync_ptsz(own, nullptr) == success);
  REQUIRE(cudaStreamSynchronize_ptsz(nullptr) == success);
  memprof::snapshot("WAITED_FOR_ONE");
  REQUIRE(cudaDeviceSynchronize() == success);
  capture.end();
  const memprof::space_profile space = capture.profile().space("cuda:0");
  CHECK(space.active.current == 0);
  REQUIRE(space.streams.size() == 2);
  CHECK(space.streams[0].stream == "default of each thread");
  CHECK(space.streams[0].cumulative_peak == 2 * mib);
  CHECK(space.streams[1].stream == "default");
  CHECK(space.streams[1].cumulative_peak == mib);
  REQUIRE(space.active.segments.size() == 2);
  CHECK(space.active.segments[0].current == mib);
}

TEST_CASE("cuda without dispatch: pools of the program hand out memory of their kind") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(0, 0)});
  void* const stream = make_stream();
  const pool_properties on_second{1, 0, 1, 1, {}};
  const pool_properties of_host{1, 0, 2, 0, {}};
  void* device_pool = nullptr;
  void* host_pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&device_pool, &on_second) == success);
  REQUIRE(cudaMemPoolCreate(&host_pool, &of_host) == success);
  void* block = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&block, 3 * mib, device_pool, stream) == success);
  void* staging = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&staging, mib, host_pool, stream) == success);
  *static_cast<char*>(staging) = 1;
  CHECK(attribute_of(device_pool, used_now) == 3 * mib);
  REQUIRE(cudaDeviceSetMemPool(0, device_pool) == success);
  void* const by_default_pool = allocate_on(stream, mib);
  CHECK(attribute_of(device_pool, used_now) == 4 * mib);
  for (void* const each : {block, staging, by_default_pool}) REQUIRE(cudaFreeAsync(each, stream) == success);
  REQUIRE(cudaStreamSynchronize(stream) == success);
  CHECK(cudaMemPoolDestroy(device_pool) == success);
  CHECK(cudaMemPoolDestroy(device_pool) == invalid_value);
  CHECK(cudaMemPoolDestroy(host_pool) == success);
  CHECK(cudaMallocFromPoolAsync(&block, mib, device_pool, stream) == invalid_value);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:1").cumulative_peak == 4 * mib);
  CHECK(profile.space("pinned").cumulative_peak == mib);
  CHECK(profile.find_space("cuda:0") == nullptr);
}

TEST_CASE("cuda without dispatch: freeing what is unknown fails, and freeing a block from an earlier capture is only counted") {
  void* before = nullptr;
  void* pinned = nullptr;
  {
    auto capture = memprof::begin_capture<cuda_no_dispatch>();
    before = allocate(mib);
    REQUIRE(cudaMallocHost(&pinned, mib) == success);
    capture.end();
  }
  CHECK(cudaFreeHost(pinned) == success);  // between captures
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(4 * mib, 0)});
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == success);
  CHECK(free == 3 * mib);
  int local = 0;
  CHECK(cudaFree(&local) == invalid_value);
  CHECK(cudaFreeHost(&local) == invalid_value);
  CHECK(cudaFreeAsync(&local, nullptr) == invalid_value);
  void* const block = allocate(mib);
  CHECK(cudaFree(static_cast<char*>(block) + 256) == invalid_value);
  CHECK(cudaFree(block) == success);
  CHECK(cudaFree(block) == invalid_value);
  CHECK(cudaFree(before) == success);
  CHECK(cudaFree(nullptr) == success);
  CHECK(cudaFreeHost(nullptr) == success);
  REQUIRE(cudaMemGetInfo(&free, &total) == success);
  CHECK(free == 4 * mib);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").anomalies.unmatched_frees.count == 1);
  CHECK(profile.space("cuda:0").deallocation_count == 1);
}

TEST_CASE("cuda without dispatch: outside its captures there is no device") {
  void* address = nullptr;
  const auto check = [&] {
    CHECK(cudaMalloc(&address, 1) == no_device);
    CHECK(cudaGetLastError() == no_device);
    CHECK(cudaMallocHost(&address, 1) == no_device);
    CHECK(cudaMallocAsync(&address, 1, nullptr) == no_device);
    CHECK(cudaFree(nullptr) == no_device);
    CHECK(cudaFree(&address) == no_device);
    int count = 7;
    CHECK(cudaGetDeviceCount(&count) == no_device);
    CHECK(count == 0);
    CHECK(cudaDeviceSynchronize() == no_device);
    CHECK(cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr) == no_device);
    CHECK(address == nullptr);
  };
  check();
  {
    auto other = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch});
    check();
  }
  {
    auto capture = memprof::begin_capture<cuda_no_dispatch>();
    CHECK(cudaFree(nullptr) == success);
  }
  check();
}

TEST_CASE("cuda without dispatch: memory is copied and filled, what comes from a device is zeros, and devices are not touched") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  std::array<int, 4> from{1, 2, 3, 4};
  std::array<int, 4> to{9, 9, 9, 9};
  void* const device = allocate(kib);
  CHECK(cudaMemcpy(device, from.data(), sizeof from, by_default) == success);
  CHECK(cudaMemcpy(to.data(), from.data(), sizeof from, by_default) == success);
  CHECK(to == from);
  CHECK(cudaMemcpyAsync(to.data(), device, 2 * sizeof(int), by_default, nullptr) == success);
  CHECK(to == std::array{0, 0, 3, 4});
  CHECK(cudaMemset(device, 1, kib) == success);
  CHECK(cudaMemset(nullptr, 1, kib) == invalid_value);

  void* managed = nullptr;
  REQUIRE(cudaMallocManaged(&managed, sizeof from, 1) == success);
  CHECK(static_cast<int*>(managed)[3] == 0);
  CHECK(cudaMemcpy(managed, from.data(), sizeof from, by_default) == success);
  CHECK(static_cast<int*>(managed)[3] == 4);
  CHECK(cudaMemset2D(managed, 2 * sizeof(int), 0xFF, sizeof(int), 2) == success);
  CHECK(static_cast<int*>(managed)[1] == 2);
  CHECK(static_cast<int*>(managed)[2] == -1);
  CHECK(cudaFree(managed) == success);

  // Columns 1 and 2 of two rows.
  std::array<int, 8> table{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<int, 4> part{};
  CHECK(cudaMemcpy2D(part.data(), 2 * sizeof(int), &table[1], 4 * sizeof(int), 2 * sizeof(int), 2, by_default) == success);
  CHECK(part == std::array{2, 3, 6, 7});
  // The same, as a box one layer deep, from a device.
  box_copy boxed{};
  boxed.from = {device, 4 * sizeof(int), 4, 2};
  boxed.to = {table.data(), 4 * sizeof(int), 4, 2};
  boxed.to_position[0] = sizeof(int);
  boxed.size = {2 * sizeof(int), 2, 1};
  CHECK(cudaMemcpy3D(&boxed) == success);
  CHECK(table == std::array{1, 0, 0, 4, 5, 0, 0, 8});
  CHECK(cudaFree(device) == success);
}

TEST_CASE("cuda without dispatch: variables of device code have their size, and an address of the device") {
  static char host_variable[16];
  __cudaRegisterVar(nullptr, host_variable, nullptr, "variable", 0, sizeof host_variable, 0, 0);
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  std::size_t bytes = 0;
  CHECK(cudaGetSymbolSize(&bytes, host_variable) == success);
  CHECK(bytes == 16);
  void* address = nullptr;
  CHECK(cudaGetSymbolAddress(&address, host_variable) == success);
  CHECK(address != nullptr);
  void* again = nullptr;
  CHECK(cudaGetSymbolAddress(&again, host_variable) == success);
  CHECK(again == address);
  int value = 5;
  CHECK(cudaMemcpyToSymbol(host_variable, &value, sizeof value, 12, by_default) == success);
  CHECK(cudaMemcpyToSymbol(host_variable, &value, sizeof value, 13, by_default) == invalid_value);
  CHECK(cudaMemcpyFromSymbol(&value, host_variable, sizeof value, 0, by_default) == success);
  CHECK(value == 0);
  CHECK(cudaMemcpyFromSymbol(&value, &value, sizeof value, 0, by_default) == invalid_symbol);
}

TEST_CASE("cuda without dispatch: devices are those that the capture describes") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = memprof::device_preset("gpu-141gb")});
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == success);
  CHECK(count == 1);
  CHECK(cudaSetDevice(1) == invalid_device);
  device_facts facts{};
  CHECK(cudaGetDeviceProperties(&facts, 0) == success);
  CHECK(std::string{facts.name} == "gpu-141gb");
  int value = 0;
  constexpr int multiprocessors = 16;
  constexpr int capability_major = 75;
  CHECK(cudaDeviceGetAttribute(&value, multiprocessors, 0) == success);
  CHECK(value == 132);
  CHECK(cudaDeviceGetAttribute(&value, capability_major, 0) == success);
  CHECK(value == 9);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, nullptr, 256, 0) == success);
  CHECK(value == 8);  // of 2,048 threads
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, nullptr, 64, 113 * kib) == success);
  CHECK(value == 2);  // of 228 KiB, 1 KiB for each block
  std::size_t limit = 0;
  CHECK(cudaDeviceSetLimit(2, 64 * mib) == success);
  CHECK(cudaDeviceGetLimit(&limit, 2) == success);
  CHECK(limit == 64 * mib);
}

TEST_CASE("cuda without dispatch: each thread has its own device and its own last error") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(0, 0)});
  REQUIRE(cudaSetDevice(1) == success);
  CHECK(cudaSetDevice(2) == invalid_device);
  std::thread([] {
    int device = -1;
    CHECK(cudaGetDevice(&device) == success);
    CHECK(device == 0);
    CHECK(cudaGetLastError() == success);
    REQUIRE(cudaFree(allocate(mib)) == success);
  }).join();
  REQUIRE(cudaFree(allocate(mib)) == success);
  REQUIRE(cudaSetDevice(0) == success);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_peak == mib);
  CHECK(profile.space("cuda:1").cumulative_peak == mib);
}

TEST_CASE("cuda without dispatch: a device that is reset ends what was allocated on it") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>({.device = devices_of(4 * mib, 4 * mib)});
  void* const block = allocate(mib);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, mib) == success);
  void* const freed = allocate_on(nullptr, mib);
  REQUIRE(cudaFreeAsync(freed, nullptr) == success);
  REQUIRE(cudaSetDevice(1) == success);
  void* const of_second = allocate(mib);
  REQUIRE(cudaSetDevice(0) == success);
  REQUIRE(cudaDeviceReset() == success);
  CHECK(cudaFree(block) == invalid_value);
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == success);
  CHECK(free == 4 * mib);
  memprof::snapshot("RESET");
  CHECK(cudaFree(of_second) == success);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").segments[0].cumulative_current == 0);
  CHECK(profile.space("pinned").segments[0].cumulative_current == 0);
  CHECK(profile.space("cuda:1").segments[0].cumulative_current == mib);
  CHECK(profile.space("cuda:0").active.current == 0);
}

TEST_CASE("cuda without dispatch: kernels are left out, unless a device would refuse them; functions of the host run") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  const auto launch = [](shape grid, shape block, void* stream) {
    return cudaLaunchKernel(nullptr, grid, block, nullptr, 0, stream);
  };
  CHECK(launch({1, 1, 1}, {32, 32, 1}, nullptr) == success);
  CHECK(launch({1, 1, 1}, {32, 33, 1}, nullptr) == invalid_configuration);
  CHECK(launch({0, 1, 1}, {32, 1, 1}, nullptr) == invalid_configuration);
  int not_a_stream = 0;
  CHECK(launch({1, 1, 1}, {32, 1, 1}, &not_a_stream) == invalid_resource_handle);
  int calls = 0;
  CHECK(cudaLaunchHostFunc(
            nullptr, [](void* user) { ++*static_cast<int*>(user); }, &calls) == success);
  CHECK(calls == 1);

  // f<<<1, 2, 3, stream>>>(g<<<4, 5>>>())
  void* const stream = make_stream();
  CHECK(__cudaPushCallConfiguration({1, 1, 1}, {2, 1, 1}, 3, stream) == 0);
  CHECK(__cudaPushCallConfiguration({4, 1, 1}, {5, 1, 1}, 0, nullptr) == 0);
  shape grid{};
  shape block{};
  std::size_t shared = 0;
  void* of = nullptr;
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &of) == success);
  CHECK(grid.x == 4);
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &of) == success);
  CHECK(block.x == 2);
  CHECK(shared == 3);
  CHECK(of == stream);
}

TEST_CASE("cuda without dispatch: streams and events") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  void* stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, 1, -3) == success);
  unsigned flags = 0;
  int priority = 0;
  CHECK(cudaStreamGetFlags(stream, &flags) == success);
  CHECK(flags == 1);
  CHECK(cudaStreamGetPriority(stream, &priority) == success);
  CHECK(priority == -3);
  void* before = nullptr;
  void* after = nullptr;
  REQUIRE(cudaEventCreate(&before) == success);
  REQUIRE(cudaEventCreate(&after) == success);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, before, after) == invalid_resource_handle);
  CHECK(cudaEventRecord(before, stream) == success);
  CHECK(cudaStreamWaitEvent(stream, before, 0) == success);
  CHECK(cudaEventRecord(after, stream) == success);
  CHECK(cudaEventSynchronize(after) == success);
  CHECK(cudaEventElapsedTime(&milliseconds, before, after) == success);
  CHECK(milliseconds >= 0);
  CHECK(cudaEventDestroy(before) == success);
  CHECK(cudaEventRecord(before, stream) == invalid_resource_handle);
  capture.end();
  CHECK(cudaEventDestroy(after) == success);
  CHECK(cudaStreamDestroy(stream) == success);
  CHECK(cudaStreamDestroy(stream) == no_device);
}

TEST_CASE("cuda without dispatch: a pointer is known by the block that it lies in") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  void* const device = allocate(kib);
  pointer_facts facts{};
  CHECK(cudaPointerGetAttributes(&facts, static_cast<char*>(device) + 100) == success);
  CHECK(facts.type == 2);
  CHECK(facts.host_pointer == nullptr);
  void* managed = nullptr;
  REQUIRE(cudaMallocManaged(&managed, kib, 1) == success);
  CHECK(cudaPointerGetAttributes(&facts, managed) == success);
  CHECK(facts.type == 3);
  CHECK(cudaPointerGetAttributes(&facts, &facts) == success);
  CHECK(facts.type == 0);
  CHECK(cudaFree(managed) == success);
  CHECK(cudaFree(device) == success);
}

TEST_CASE("cuda without dispatch: a block can be divided into its parts") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  const memprof::block_part parts[] = {{0, mib, {.name = "encoded", .category = memprof::category::activation}}};
  void* block = nullptr;
  {
    const memprof::cuda_block_parts divided{parts};
    block = allocate(3 * mib);
  }
  capture.end();
  const memprof::space_profile space = capture.profile().space("cuda:0");
  CHECK(space.cumulative_peak == 3 * mib);
  REQUIRE(space.live_at_peak.largest_blocks.size() == 2);
  CHECK(space.live_at_peak.largest_blocks[1].name == "encoded");
  CHECK(cudaFree(block) == success);
}

TEST_CASE("cuda without dispatch: handles are in sequence, so that two runs of a program have the same streams by name") {
  auto capture = memprof::begin_capture<cuda_no_dispatch>();
  void* const first = make_stream();
  void* const second = make_stream();
  CHECK(reinterpret_cast<std::uintptr_t>(second) - reinterpret_cast<std::uintptr_t>(first) == 0x100);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 0x100 == 0);
  REQUIRE(cudaStreamDestroy(first) == success);
  REQUIRE(cudaStreamDestroy(second) == success);
}

TEST_CASE("cuda without dispatch: touching device memory ends the program with a message that says why") {
  const std::string said = stderr_of([] {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);  // not the test runner's
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      auto capture = memprof::begin_capture<cuda_no_dispatch>();
      void* address = nullptr;
      if (cudaMalloc(&address, kib) == success) *static_cast<volatile char*>(address) = 1;
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((!WIFEXITED(status) || WEXITSTATUS(status) != 0));
  });
  CHECK_THAT(said, ContainsSubstring("memprof: the program touched memory that a NO_DISPATCH capture only counted"));
}

TEST_CASE("cuda without dispatch: errors have CUDA's names and texts") {
  CHECK(std::string{cudaGetErrorString(no_device)} == "no CUDA-capable device is detected");
  CHECK(std::string{cudaGetErrorName(out_of_memory)} == "cudaErrorMemoryAllocation");
  CHECK(std::string{cudaGetErrorName(12345)} == "unrecognized error code");
  void* const cuda = ::dlopen(MEMPROF_TEST_CUDART, RTLD_NOW | RTLD_LOCAL);
  if (cuda == nullptr) SKIP("CUDA's own runtime, with which to compare the others, is not there");
  auto* const name = reinterpret_cast<const char* (*)(int)>(::dlsym(cuda, "cudaGetErrorName"));
  auto* const text = reinterpret_cast<const char* (*)(int)>(::dlsym(cuda, "cudaGetErrorString"));
  REQUIRE(name != nullptr);
  REQUIRE(text != nullptr);
  for (const int result : {success, invalid_value, out_of_memory, invalid_configuration, invalid_symbol, no_device,
                           invalid_device, invalid_resource_handle, 12345}) {
    CHECK(std::string{cudaGetErrorName(result)} == name(result));
    CHECK(std::string{cudaGetErrorString(result)} == text(result));
  }
}

}  // namespace memprof_tests::cuda_no_dispatch
