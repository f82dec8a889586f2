// The adaptor over resources of cuda::mr: over one that has the functions of the CCCL that is there, and over made-up ones of
// both generations.
#include <memprof/backend/cuda_memory_resource.hpp>
#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace memprof_tests::cuda_memory_resource {

/// Host memory, in the functions of one generation.
struct older_upstream {
  void* allocate(std::size_t bytes, std::size_t) {
    if (bytes > 1'000'000) throw std::bad_alloc{};
    return std::malloc(bytes);
  }
  void deallocate(void* address, std::size_t, std::size_t) noexcept { std::free(address); }
  void* allocate_async(std::size_t bytes, std::size_t, ::cuda::stream_ref) { return std::malloc(bytes); }
  void deallocate_async(void* address, std::size_t, std::size_t, ::cuda::stream_ref) noexcept { std::free(address); }
  friend bool operator==(const older_upstream&, const older_upstream&) { return true; }
  friend bool operator!=(const older_upstream&, const older_upstream&) { return false; }
  friend void get_property(const older_upstream&, ::cuda::mr::host_accessible) noexcept {}
};
struct newer_upstream {
  void* allocate_sync(std::size_t bytes, std::size_t) { return std::malloc(bytes); }
  void deallocate_sync(void* address, std::size_t, std::size_t) noexcept { std::free(address); }
  void* allocate(::cuda::stream_ref, std::size_t bytes, std::size_t) { return std::malloc(bytes); }
  void deallocate(::cuda::stream_ref, void* address, std::size_t, std::size_t) noexcept { std::free(address); }
  friend bool operator==(const newer_upstream&, const newer_upstream&) { return true; }
  friend bool operator!=(const newer_upstream&, const newer_upstream&) { return false; }
  friend void get_property(const newer_upstream&, ::cuda::mr::host_accessible) noexcept {}
};

namespace {

cudaStream_t stream_number(std::uintptr_t number) { return reinterpret_cast<cudaStream_t>(number); }
const ::cuda::stream_ref stream{stream_number(0x5500)};

using older = memprof::cuda::memory_resource_adaptor<older_upstream>;
using newer = memprof::cuda::memory_resource_adaptor<newer_upstream>;

#if CCCL_VERSION >= 3001000
static_assert(::cuda::mr::synchronous_resource<newer> && ::cuda::mr::resource<newer>);
static_assert(::cuda::mr::resource_with<newer, ::cuda::mr::host_accessible>);
static_assert(!::cuda::has_property<newer, ::cuda::mr::device_accessible>);
#else
static_assert(::cuda::mr::resource<older> && ::cuda::mr::async_resource<older>);
static_assert(::cuda::mr::resource_with<older, ::cuda::mr::host_accessible>);
static_assert(!::cuda::has_property<older, ::cuda::mr::device_accessible>);
#endif

}  // namespace

TEST_CASE("cuda memory_resource_adaptor: it records what a resource of CCCL 3.0 hands out, by stream") {
  older memory{older_upstream{}, "cuda:3"};
  auto capture = memprof::begin_capture();
  void* const plain = memory.allocate(100);
  void* const ordered = memory.allocate_async(50, 8, stream);
  CHECK_THROWS_AS(memory.allocate(2'000'000), std::bad_alloc);
  memory.deallocate(plain, 100);
  memprof::snapshot("HALF");
  memory.deallocate_async(ordered, 50, 8, stream);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:3");
  CHECK(space.cumulative_peak == 150);
  CHECK(space.segments[0].cumulative_current == 50);
  CHECK(space.cumulative_current == 0);
  REQUIRE(space.streams.size() == 1);
  CHECK(space.streams[0].stream == "0x5500");
  CHECK(space.streams[0].cumulative_peak == 50);
  CHECK(space.active.current == 0);
}

TEST_CASE("cuda memory_resource_adaptor: it records what a resource of CCCL 3.1 hands out, by stream") {
  newer memory{newer_upstream{}, "cuda:3"};
  auto capture = memprof::begin_capture();
  void* const plain = memory.allocate_sync(100);
  void* const ordered = memory.allocate(stream, 50);
  memory.deallocate_sync(plain, 100);
  memory.deallocate(stream, ordered, 50);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:3").cumulative_peak == 150);
  CHECK(profile.space("cuda:3").cumulative_current == 0);
  REQUIRE(profile.space("cuda:3").streams.size() == 1);
  CHECK(profile.space("cuda:3").streams[0].allocation_count == 1);
}

TEST_CASE("cuda memory_resource_adaptor: adaptors are equal if their upstreams are, and a reference records, too") {
  CHECK(older{older_upstream{}, "cuda:3"} == older{older_upstream{}, "cuda:4"});
  auto capture = memprof::begin_capture();
#if CCCL_VERSION >= 3001000
  newer memory{newer_upstream{}, "cuda:3"};
  ::cuda::mr::synchronous_resource_ref<::cuda::mr::host_accessible> reference{memory};
  reference.deallocate_sync(reference.allocate_sync(10, 8), 10, 8);
#else
  older memory{older_upstream{}, "cuda:3"};
  ::cuda::mr::resource_ref<::cuda::mr::host_accessible> reference{memory};
  reference.deallocate(reference.allocate(10, 8), 10, 8);
#endif
  capture.end();
  CHECK(capture.profile().space("cuda:3").cumulative_peak == 10);
}

}  // namespace memprof_tests::cuda_memory_resource
