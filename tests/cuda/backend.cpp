// Programs that allocate on CUDA, on a stand-in for its driver and for CUPTI: captured as users capture them.
#include "stand_in/driver.hpp"

#include <scratch_folder.hpp>
#include <stderr_of.hpp>

#include <memprof/backend/cuda.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/cuda_memory.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/trace_profile.hpp>
#if MEMPROF_TEST_PAGE
#include <memprof/toolkit/page/html.hpp>
#include <toolkit/page/page_reader.hpp>
#endif

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include <dlfcn.h>

extern "C" CUdeviceptr take_workspace(std::size_t bytes);
extern "C" unsigned long long take_chunk(std::size_t bytes);

namespace memprof_tests::cuda_backend {

namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr int success = 0;
constexpr int out_of_memory = 2;

/// The primary context of device 0, current on this thread.
void* use_device(int device = 0) {
  void* context = nullptr;
  REQUIRE(cuInit(0) == success);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == success);
  REQUIRE(cuCtxSetCurrent(context) == success);
  return context;
}

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == success);
  return address;
}

/// A training step: weights stay, activations are freed on a stream.
struct trainer {
  CUdeviceptr weights = 0;
  void* stream = nullptr;
  void* staging = nullptr;

  void set_up() {
    REQUIRE(cuStreamCreate(&stream, 0) == success);
    weights = allocate(8 * mib);
    REQUIRE(cuMemAllocHost_v2(&staging, 3 * mib) == success);
  }
  void step() {
    auto scope = memprof::track_operation<"forward">();
    CUdeviceptr activation = 0;
    REQUIRE(cuMemAllocAsync(&activation, 4 * mib, stream) == success);
    REQUIRE(cuMemFreeAsync(activation, stream) == success);
  }
  void tear_down() {
    REQUIRE(cuStreamSynchronize(stream) == success);
    REQUIRE(cuMemFreeHost(staging) == success);
    REQUIRE(cuMemFree_v2(weights) == success);
  }
};

}  // namespace

TEST_CASE("cuda backend: a program's memory is captured, in its profile, its trace and its page") {
  use_device();
  const scratch_folder folder;
  trainer of;
  auto capture = memprof::begin_capture<memprof::cuda_backend>({.trace_file = folder.file("run.memtrace")});
  of.set_up();
  memprof::snapshot("MODEL_CREATION");
  for (int step = 0; step < 3; ++step) of.step();
  memprof::snapshot("TRAINING");
  of.tear_down();
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 12 * mib);
  CHECK(space.peak_operation == "forward");
  CHECK(space.cumulative_current == 0);
  CHECK(space.allocation_count == 4);
  CHECK(space.active.peak == 4 * mib);  // the stream reuses at once what was freed on it
  CHECK(space.active.current == 0);
  CHECK(space.active.missing_completions.count == 0);
  CHECK(profile.space("pinned").cumulative_peak == 3 * mib);
  CHECK(profile.exact);
  CHECK(memprof::rows_of<memprof::missing_source>(profile.facts).empty());
  CHECK_THAT(memprof::to_text(profile), ContainsSubstring("12.0 MiB (12,582,912 B) of cuda:0"));
  const memprof::profile again = memprof::profile_of(folder / "run.memtrace");
  CHECK(again.space("cuda:0").cumulative_peak == 12 * mib);
  CHECK(again.space("cuda:0").streams == space.streams);
  CHECK(again.space("cuda:0").active == space.active);
  CHECK(again.space("pinned").cumulative_peak == 3 * mib);
#if MEMPROF_TEST_PAGE
  memprof::write_html(profile, folder / "run.html");
  const memprof_tests::page_reader page{folder / "run.html"};
  CHECK_THAT(page.run.at("profile").at("spaces").dump(), ContainsSubstring("\"cuda:0\""));
#endif
}

TEST_CASE("cuda backend: devices, managed and virtual memory, and contexts that end") {
  void* const first = use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  void* second = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 1) == success);
  (void)allocate(2 * mib);
  CUdeviceptr managed = 0;
  REQUIRE(cuMemAllocManaged(&managed, 5 * mib, 1) == success);
  REQUIRE(cuCtxSetCurrent(first) == success);
  const int properties[8] = {1, 0, 1, 0};
  unsigned long long handle = 0;
  REQUIRE(cuMemCreate(&handle, 2 * mib, properties, 0) == success);
  REQUIRE(cuMemMap(0x600000000000, 2 * mib, 0, handle, 0) == success);
  REQUIRE(cuMemRelease(handle) == success);
  memprof::snapshot("ALLOCATED");
  REQUIRE(cuMemUnmap(0x600000000000, 2 * mib) == success);
  REQUIRE(cuCtxDestroy_v2(second) == success);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:1").cumulative_peak == 2 * mib);
  CHECK(profile.space("cuda:1 managed").cumulative_peak == 5 * mib);
  CHECK(profile.space("cuda:0").cumulative_peak == 2 * mib);
  for (const memprof::space_profile& space : profile.spaces) CHECK(space.cumulative_current == 0);
}

TEST_CASE("cuda backend: out of memory is reported, and the program goes on") {
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc_v2(&address, std::size_t{8} << 30) == out_of_memory);
  const CUdeviceptr small = allocate(mib);
  CHECK(cuMemFree_v2(small + 1) != success);
  capture.end();
  const memprof::profile profile = capture.profile();
  REQUIRE(profile.space("cuda:0").out_of_memory.size() == 1);
  CHECK(profile.space("cuda:0").out_of_memory[0].requested == std::int64_t{8} << 30);
  CHECK(profile.space("cuda:0").cumulative_current == mib);
}

TEST_CASE("cuda backend: threads that allocate at once are all captured") {
  void* const context = use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  const auto work = [context] {
    (void)cuCtxSetCurrent(context);
    for (int round = 0; round < 200; ++round) {
      CUdeviceptr address = 0;
      (void)cuMemAlloc_v2(&address, 1024);
      if (round % 2 == 0) (void)cuMemFree_v2(address);
    }
  };
  std::thread first{work};
  std::thread second{work};
  first.join();
  second.join();
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == 2 * 100 * 1024);
}

TEST_CASE("cuda backend: a second capture sees CUDA, too, and what was there before is not in it") {
  use_device();
  CUdeviceptr before = 0;
  {
    auto capture = memprof::begin_capture<memprof::cuda_backend>();
    before = allocate(mib);
    capture.end();
    CHECK(capture.profile().space("cuda:0").cumulative_current == mib);
  }
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  REQUIRE(cuMemFree_v2(before) == success);
  (void)allocate(2 * mib);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 2 * mib);
  CHECK(profile.space("cuda:0").anomalies.unmatched_frees.count == 1);
}

TEST_CASE("cuda backend: the marks of pools are kept by segment, and what a device holds is accounted for") {
  use_device();
  void* stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, 0) == success);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  CUdeviceptr third = 0;
  CUdeviceptr earlier = 0;
  REQUIRE(cuMemAllocAsync(&earlier, 31 * mib, stream) == success);  // a mark from before the capture
  REQUIRE(cuMemFreeAsync(earlier, stream) == success);
  REQUIRE(cuStreamSynchronize(stream) == success);
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  (void)allocate(8 * mib);
  REQUIRE(cuMemAllocAsync(&first, 10 * mib, stream) == success);
  REQUIRE(cuMemAllocAsync(&second, 20 * mib, stream) == success);
  REQUIRE(cuMemFreeAsync(second, stream) == success);
  memprof::snapshot("FORWARD");
  REQUIRE(cuStreamSynchronize(stream) == success);
  memprof::snapshot("BACKWARD");
  memprof::snapshot("QUIET");
  REQUIRE(cuMemAllocAsync(&third, 30 * mib, stream) == success);
  capture.end("OPTIMIZER");
  const memprof::profile profile = capture.profile();
  // The stand-in's pools take 32 MiB at a time, and count what is pending as used; a context takes 64 MiB.
  const auto pools = memprof::rows_of<memprof::cuda_pool_memory>(profile.facts);
  REQUIRE(pools.size() == 4);
  CHECK(pools[0] == memprof::cuda_pool_memory{"cuda:0", "", "FORWARD", 1, 32 * mib, 30 * mib, 32 * mib, 30 * mib});
  CHECK(pools[1] == memprof::cuda_pool_memory{"cuda:0", "", "BACKWARD", 1, 32 * mib, 30 * mib, 32 * mib, 10 * mib});
  CHECK(pools[2] == memprof::cuda_pool_memory{"cuda:0", "", "QUIET", 1, 32 * mib, 10 * mib, 32 * mib, 10 * mib});
  CHECK(pools[3] == memprof::cuda_pool_memory{"cuda:0", "", "OPTIMIZER", 1, 64 * mib, 40 * mib, 64 * mib, 40 * mib});
  const auto devices = memprof::rows_of<memprof::cuda_device_memory>(profile.facts);
  REQUIRE(devices.size() == 3);
  CHECK(devices[0] == memprof::cuda_device_memory{"cuda:0", "first", 1024 * mib, 96 * mib, 0, 0, 32 * mib, 64 * mib, 0});
  CHECK(devices[1] ==
        memprof::cuda_device_memory{"cuda:0", "last", 1024 * mib, 136 * mib, 48 * mib, 0, 24 * mib, 64 * mib, 20 * mib});
  CHECK(devices[2].moment == "most_used");
  CHECK(devices[2].used_bytes == 136 * mib);
  CHECK_THAT(
      memprof::to_text(profile),
      ContainsSubstring("Device    cuda:0 136 MiB used of 1.00 GiB: 48.0 MiB recorded, 24.0 MiB free in pools, 64.0 MiB other"));
}

TEST_CASE("cuda backend: what is freed on a stream and still in use is pending, not unexplained") {
  use_device(1);
  void* stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, 0) == success);
  CUdeviceptr address = 0;
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  REQUIRE(cuMemAllocAsync(&address, 20 * mib, stream) == success);
  REQUIRE(cuMemFreeAsync(address, stream) == success);
  REQUIRE(cuCtxSetCurrent(nullptr) == success);  // another thread may take the snapshot
  capture.end();
  const memprof::profile profile = capture.profile();
  const auto devices = memprof::rows_of<memprof::cuda_device_memory>(profile.facts);
  REQUIRE(devices.size() == 3);
  CHECK(devices[1] ==
        memprof::cuda_device_memory{"cuda:1", "last", 1024 * mib, 96 * mib, 0, 20 * mib, 12 * mib, 64 * mib, 20 * mib});
  CHECK_THAT(memprof::to_text(profile), ContainsSubstring("20.0 MiB freed but in use at the end"));
  void* current = &stream;
  REQUIRE(cuCtxGetCurrent(&current) == success);
  CHECK(current == nullptr);
}

TEST_CASE("cuda backend: a pool that the program makes has rows of its own until it is destroyed") {
  use_device();
  const int properties[22] = {1, 0, 1, 0};
  void* pool = nullptr;
  CUdeviceptr address = 0;
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  REQUIRE(cuMemPoolCreate(&pool, properties) == success);
  REQUIRE(cuMemAllocFromPoolAsync(&address, 5 * mib, pool, nullptr) == success);
  memprof::snapshot("POOL");
  REQUIRE(cuMemFreeAsync(address, nullptr) == success);
  REQUIRE(cuMemPoolDestroy(pool) == success);
  memprof::snapshot("NO_POOL");
  capture.end();
  const memprof::profile profile = capture.profile();
  const auto pools = memprof::rows_of<memprof::cuda_pool_memory>(profile.facts);
  REQUIRE(pools.size() == 1);
  std::ostringstream handle;
  handle << pool;
  CHECK(pools[0] == memprof::cuda_pool_memory{"cuda:0", handle.str(), "POOL", 1, 32 * mib, 5 * mib, 32 * mib, 5 * mib});
}

TEST_CASE("cuda backend: CUPTI before version 13 has no call that knows several subscribers, and serves") {
  REQUIRE(::dlopen(MEMPROF_STAND_IN_CUPTI_12, RTLD_NOW) != nullptr);  // the program has it loaded
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  CHECK(::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD) == nullptr);
  (void)allocate(mib);
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == mib);
}

TEST_CASE("cuda backend: while another tool has CUPTI's callbacks, the capture goes on without CUDA, and names the tool once") {
  ::setenv("STAND_IN_CUPTI_HOLDER", "CUPTI for Nsight Systems", 1);
  use_device();
  for (int times = 0; times < 2; ++times) {
    memprof::profile profile;
    const std::string said = stderr_of([&] {
      auto capture = memprof::begin_capture<memprof::cuda_backend>();
      (void)allocate(mib);
      capture.end();
      profile = capture.profile();
    });
    CHECK(profile.find_space("cuda:0") == nullptr);
    const auto missing = memprof::rows_of<memprof::missing_source>(profile.facts);
    REQUIRE(missing.size() == 1);
    CHECK(missing[0].source == "CUDA");
    CHECK_THAT(missing[0].reason, ContainsSubstring("CUPTI for Nsight Systems has CUPTI's callbacks"));
    CHECK_THAT(memprof::to_text(profile), ContainsSubstring("CUDA not captured:"));
    if (times == 0)
      CHECK_THAT(said, ContainsSubstring("memprof: CUDA is not captured: CUPTI for Nsight Systems"));
    else
      CHECK(said.empty());
  }
  ::unsetenv("STAND_IN_CUPTI_HOLDER");
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  (void)allocate(mib);
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == mib);
}

TEST_CASE("cuda backend: where CUPTI and another tool can share its callbacks, both have them") {
  ::setenv("STAND_IN_CUPTI_HOLDER", "CUPTI for Kineto", 1);
  ::setenv("STAND_IN_CUPTI_SHARES", "1", 1);
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  (void)allocate(mib);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == mib);
  CHECK(memprof::rows_of<memprof::missing_source>(profile.facts).empty());
}

/// What a capture says of CUDA where a variable of the stand-in for CUPTI is set.
[[nodiscard]] std::string reason_with(const char* variable, const char* value) {
  ::setenv(variable, value, 1);
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  capture.end();
  ::unsetenv(variable);
  const auto missing = memprof::rows_of<memprof::missing_source>(capture.profile().facts);
  REQUIRE(missing.size() == 1);
  return missing[0].reason;
}

TEST_CASE("cuda backend: without CUPTI's consent, the capture goes on, and says why") {
  CHECK(reason_with("STAND_IN_CUPTI_REFUSES", "999") == "CUPTI refuses (CUPTI_ERROR_UNKNOWN)");
  CHECK(reason_with("STAND_IN_CUPTI_SILENT", "1") == "CUPTI does not report the driver's calls (CUPTI_ERROR_UNKNOWN)");
}

TEST_CASE("cuda backend: after a capture, CUPTI's callbacks are another tool's to take") {
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  capture.end();
  void* const cupti = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(cupti != nullptr);
  auto* const subscribe =
      reinterpret_cast<int (*)(void**, void (*)(void*, int, unsigned, const void*), void*)>(::dlsym(cupti, "cuptiSubscribe"));
  void* handle = nullptr;
  CHECK(subscribe(
            &handle, [](void*, int, unsigned, const void*) {}, nullptr) == success);
}

TEST_CASE("cuda backend: what a library takes outside every operation is the library's") {
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  REQUIRE(take_workspace(4 * mib) != 0);
  {
    auto scope = memprof::track_operation<"forward">();
    REQUIRE(take_workspace(2 * mib) != 0);
  }
  REQUIRE(take_chunk(8 * mib) != 0);
  (void)allocate(mib);  // the program's own
  capture.end();
  const memprof::profile profile = capture.profile();
  const auto bytes_of = [&](std::string_view path) {
    const memprof::operation_profile* const found = profile.find_operation(path);
    return found == nullptr ? -1 : found->usage[0].total_delta;
  };
  CHECK(bytes_of("libmemprof_asking_library.so") == std::int64_t{12 * mib});
  CHECK(bytes_of("forward") == std::int64_t{2 * mib});
  CHECK(profile.operations.size() == 2);
  CHECK(profile.space("cuda:0").cumulative_current == 15 * mib);
  CHECK(profile.exact);
}

TEST_CASE("cuda backend: a tool whose name CUPTI does not know is another tool") {
  ::setenv("STAND_IN_CUPTI_HOLDER", "<not provided>", 1);
  use_device();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  capture.end();
  const memprof::profile profile = capture.profile();
  const auto missing = memprof::rows_of<memprof::missing_source>(profile.facts);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].reason.starts_with("another tool has CUPTI's callbacks"));
  ::unsetenv("STAND_IN_CUPTI_HOLDER");
}

}  // namespace memprof_tests::cuda_backend
