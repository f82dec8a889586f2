// What calls of CUDA's driver mean as events: success, failure, threads that interleave, and every call that is followed.
#include "driver_calls.hpp"

#include <memprof/backend/cuda.hpp>
#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::cuda {

namespace {

constexpr std::uint64_t a = 0x7f0000000000;
constexpr std::uint64_t b = 0x7f0000100000;
constexpr std::uint64_t stream_1 = 0x5500000000;
constexpr std::uint64_t stream_2 = 0x5500001000;
constexpr std::uint64_t pool = 0x5600000000;

/// The row of a stream in a pool.
const memprof::stream_usage& row_of(const memprof::space_profile& space, std::string_view stream, std::string_view pool_name) {
  for (const memprof::stream_usage& row : space.streams) {
    if (row.stream == stream && row.pool == pool_name) return row;
  }
  FAIL("no row for stream " << stream << " and pool " << pool_name);
  return space.streams[0];
}

/// Names and bytes of the largest blocks at the peak.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> largest_of(const memprof::profile& profile) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const memprof::live_block& block : profile.space("cuda:0").live_at_peak.largest_blocks)
    found.emplace_back(block.name, block.bytes);
  return found;
}

}  // namespace

TEST_CASE("cuda: device memory counts in the space of its device, from the call's success to its free") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  calls.alloc(driver_call::alloc, b, 24, 2);
  memprof::snapshot("ALLOCATED");
  calls.free(a);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_peak == 1000);
  CHECK(profile.space("cuda:0").cumulative_current == 0);
  CHECK(profile.space("cuda:1").cumulative_current == 24);
  CHECK(profile.exact);
}

TEST_CASE("cuda: a free is recorded when its call begins, and an allocation when its call has ended") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  const std::uint64_t address = b;
  call allocation{calls.events, driver_call::alloc, interface::alloc_parameters{&address, 500}};
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1000);
  allocation.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1500);
  call deallocation{calls.events, driver_call::free, interface::free_parameters{a}};
  CHECK(capture.profile().space("cuda:0").cumulative_current == 500);
  deallocation.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == 500);
}

TEST_CASE("cuda: managed, pitched, pinned memory and arrays count with their bytes in their spaces") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc_managed, a, 4096, 2);
  calls.alloc(driver_call::alloc_host, 0x1000, 100);
  calls.alloc(driver_call::host_alloc, 0x2000, 10);
  calls.alloc(driver_call::host_alloc_v2, 0x3000, 1);
  const std::uint64_t pitched = b;
  const std::size_t pitch = 512;
  call{calls.events, driver_call::alloc_pitch, interface::alloc_pitch_parameters{&pitched, &pitch, 300, 7}}.end();
  const std::uint64_t array = 0x9000;
  constexpr int float_format = 0x20;
  const interface::array_descriptor plane { 16, 8, float_format, 2 };
  call{calls.events, driver_call::array_create, interface::array_parameters{&array, &plane}}.end();
  const std::uint64_t volume = 0x9100;
  const interface::array_3d_descriptor box { 4, 4, 4, float_format, 1, 0 };
  call{calls.events, driver_call::array_3d_create, interface::array_3d_parameters{&volume, &box, 0}}.end();
  const std::uint64_t mipmapped = 0x9200;
  call{calls.events, driver_call::mipmapped_array_create, interface::array_3d_parameters{&mipmapped, &box, 3}}.end();
  memprof::snapshot("ALLOCATED");
  const memprof::profile allocated = capture.profile();
  CHECK(allocated.space("cuda:1 managed").cumulative_current == 4096);
  CHECK(allocated.space("pinned").cumulative_current == 111);
  // Rows of 512 bytes; 16 x 8 elements of two floats; 64 floats; and 64 + 8 + 1 floats.
  CHECK(allocated.space("cuda:0").cumulative_current == 7 * 512 + 16 * 8 * 8 + 64 * 4 + 73 * 4);
  calls.free(a, driver_call::free, success, 2);
  for (const std::uint64_t address : {0x1000, 0x2000, 0x3000}) calls.free(address, driver_call::free_host);
  calls.free(b);
  calls.free(array, driver_call::array_destroy);
  calls.free(volume, driver_call::array_destroy);
  calls.free(mipmapped, driver_call::mipmapped_array_destroy);
  capture.end();
  for (const memprof::space_profile& space : capture.profile().spaces) CHECK(space.cumulative_current == 0);
}

TEST_CASE("cuda: sparse arrays and those that are mapped later hold nothing") {
  program calls;
  auto capture = memprof::begin_capture();
  const std::uint64_t array = 0x9000;
  for (const unsigned flags : {0x40U, 0x80U}) {
    const interface::array_3d_descriptor described { 16, 16, 0, 0x20, 1, flags };
    call{calls.events, driver_call::array_3d_create, interface::array_3d_parameters{&array, &described, 0}}.end();
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.find_space("cuda:0") == nullptr);
}

TEST_CASE("cuda: an allocation that fails is not recorded, and one for lack of memory is reported") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1 << 20, 1, interface::out_of_memory);
  calls.alloc(driver_call::alloc, a, 1 << 10, 1, invalid_value);
  calls.alloc_async(b, 1 << 12, stream_1, interface::out_of_memory);
  calls.create(0x77, 1 << 21, 0, interface::out_of_memory);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 0);
  REQUIRE(space.out_of_memory.size() == 3);
  CHECK(space.out_of_memory[0].requested == 1 << 20);
  CHECK(space.out_of_memory[1].requested == 1 << 12);
  CHECK(space.out_of_memory[2].requested == 1 << 21);
}

TEST_CASE("cuda: a free that fails leaves the block live") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  calls.free(a, driver_call::free, invalid_value);
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1000);
  calls.alloc_async(b, 200, stream_1);
  calls.free_async(b, stream_1, invalid_value);
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1200);
  CHECK(capture.profile().space("cuda:0").active.current == 200);
  calls.free(a);
  calls.free_async(b, stream_1);
  calls.synchronize_stream(stream_1);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 0);
  CHECK(profile.space("cuda:0").active.current == 0);
  CHECK(profile.space("cuda:0").cumulative_peak == 1200);
}

TEST_CASE("cuda: freeing what is unknown counts as an unmatched free if the call succeeds, and freeing null as nothing") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, b, 1);
  calls.free(a);
  calls.free(a, driver_call::free, invalid_value);
  calls.free_async(a, stream_1);
  calls.free(0);
  calls.free(0, driver_call::free_host);
  calls.free(0x1000, driver_call::free_host);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").anomalies.unmatched_frees.count == 2);
  CHECK(profile.space("pinned").anomalies.unmatched_frees.count == 1);
}

TEST_CASE("cuda: another thread may get an address before the call that freed it has returned") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  call deallocation{calls.events, driver_call::free, interface::free_parameters{a}};
  std::thread{[&] { calls.alloc(driver_call::alloc, a, 300, 2); }}.join();
  deallocation.end();
  call unknown{calls.events, driver_call::free, interface::free_parameters{b}};
  std::thread{[&] { calls.alloc(driver_call::alloc, b, 50); }}.join();
  unknown.end();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 50);
  CHECK(profile.space("cuda:1").cumulative_current == 300);
  CHECK(profile.space("cuda:0").cumulative_peak == 1000);
}

TEST_CASE("cuda: threads that allocate and free at once leave what they keep") {
  program calls;
  auto capture = memprof::begin_capture();
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t blocks = 500;
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&calls, thread] {
      for (std::uint64_t block = 0; block < blocks; ++block) {
        const std::uint64_t address = a + (thread << 32) + (block << 12);
        calls.alloc(driver_call::alloc, address, 256);
        if (block % 5 != 0) calls.free(address, driver_call::free, block % 5 == 1 ? invalid_value : success);
      }
    });
  }
  for (std::thread& each : running) each.join();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == threads * (blocks / 5) * 2 * 256);  // kept, and of failed frees
  CHECK(profile.space("cuda:0").anomalies.unmatched_frees.count == 0);
}

TEST_CASE("cuda: stream-ordered blocks count by stream and pool, and stay active until the host has waited") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 1000, stream_1);
  calls.alloc_from_pool(b, 300, pool, stream_2);
  calls.free_async(a, stream_1);
  const memprof::profile freed = capture.profile();
  CHECK(freed.space("cuda:0").cumulative_current == 300);
  CHECK(freed.space("cuda:0").active.current == 1300);
  CHECK(row_of(freed.space("cuda:0"), "0x5500000000", "").cumulative_peak == 1000);
  CHECK(row_of(freed.space("cuda:0"), "0x5500001000", "0x5600000000").cumulative_current == 300);
  calls.synchronize_stream(stream_2);
  CHECK(capture.profile().space("cuda:0").active.current == 1300);
  calls.synchronize_stream(stream_1, 2);  // of another context
  CHECK(capture.profile().space("cuda:0").active.current == 1300);
  calls.synchronize_stream(stream_1);
  CHECK(capture.profile().space("cuda:0").active.current == 300);
  calls.free_async(b, stream_1);  // on another stream than it was allocated on
  calls.synchronize_context();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").active.current == 0);
  CHECK(profile.space("cuda:0").active.peak == 1300);
  CHECK(profile.space("cuda:0").cumulative_peak == 1300);
  CHECK(profile.space("cuda:0").active.missing_completions.count == 0);
}

TEST_CASE("cuda: a pending block ends where the driver gives its memory out again, or a part of it") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 1000, stream_1);
  calls.alloc_async(a + 1024, 1000, stream_1);
  calls.alloc_async(a + 2048, 1000, stream_1);
  for (const std::uint64_t offset : {0, 2048, 1024}) calls.free_async(a + offset, stream_1);
  CHECK(capture.profile().space("cuda:0").active.current == 3000);
  calls.alloc_async(a + 512, 1024, stream_1);  // of the first and the second
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").active.current == 1000 + 1024);
  CHECK(profile.space("cuda:0").cumulative_current == 1024);
  CHECK(profile.space("cuda:0").active.missing_completions.count == 0);
}

TEST_CASE("cuda: a stream-ordered block may be freed at once, and a plain one on a stream") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 1000, stream_1);
  calls.alloc(driver_call::alloc, b, 500);
  calls.free(a);
  CHECK(capture.profile().space("cuda:0").active.current == 0);
  calls.free_async(b, stream_1);
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_current == 0);
}

TEST_CASE("cuda: each thread waits for its own default stream alone") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async_per_thread(a, 1000);
  calls.alloc_from_pool_per_thread(b, 300, pool);
  calls.free_async_per_thread(a);
  std::thread{[&] {
    calls.free_async_per_thread(b);
    calls.synchronize_stream(interface::per_thread_stream);
  }}.join();
  const memprof::profile waited = capture.profile();
  CHECK(waited.space("cuda:0").active.current == 1000);
  CHECK(row_of(waited.space("cuda:0"), "default of each thread", "0x5600000000").cumulative_peak == 300);
  calls.synchronize_stream(interface::per_thread_stream);
  capture.end();
  CHECK(capture.profile().space("cuda:0").active.current == 0);
}

TEST_CASE("cuda: a free on a stream that fails leaves nothing pending") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 1000, stream_1);
  calls.free_async(a, stream_1, invalid_value);
  CHECK(capture.profile().space("cuda:0").active.current == 1000);
  calls.free_async(a, stream_1);
  calls.synchronize_stream(stream_1);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").active.current == 0);
  CHECK(profile.space("cuda:0").active.peak == 1000);
  CHECK(profile.space("cuda:0").active.missing_completions.count == 0);
}

TEST_CASE("cuda: the default streams have names") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 10, 0);
  const std::uint64_t address = b;
  call{calls.events, driver_call::alloc_async_per_thread, interface::alloc_async_parameters{&address, 20, 0}}.end();
  calls.alloc_async(b + 4096, 40, 2);  // CU_STREAM_PER_THREAD
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(row_of(profile.space("cuda:0"), "default", "").cumulative_current == 10);
  CHECK(row_of(profile.space("cuda:0"), "default of each thread", "").cumulative_current == 60);
}

TEST_CASE("cuda: a pool's memory is where the pool was made for") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.make_pool(pool, {1, 0, {1, 1}});        // on device 1
  calls.make_pool(pool + 64, {1, 0, {2, 0}});   // of the host
  calls.make_pool(pool + 128, {2, 0, {0, 0}});  // managed
  calls.alloc_from_pool(a, 100, pool, stream_1);
  calls.alloc_from_pool(a + 4096, 20, pool + 64, stream_1);
  calls.alloc_from_pool(a + 8192, 3, pool + 128, stream_1);
  calls.free(pool, driver_call::pool_destroy, invalid_value);
  calls.alloc_from_pool(a + 12288, 4, pool, stream_1);
  calls.free(pool, driver_call::pool_destroy);
  calls.alloc_from_pool(b, 7000, pool, stream_1);                        // a new pool at the same place, which was not seen
  calls.get_pool(pool + 192, {2, 0}, 1, driver_call::get_default_pool);  // the host's own
  calls.alloc_from_pool(a + 16384, 5, pool + 192, stream_1);
  calls.get_pool(pool + 64, {1, 1}, 1);  // known already
  calls.alloc_from_pool(a + 20480, 6, pool + 64, stream_1);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:1").cumulative_current == 104);
  CHECK(profile.space("pinned").cumulative_current == 20 + 5 + 6);
  CHECK(profile.space("cuda:0 managed").cumulative_current == 3);
  CHECK(profile.space("cuda:0").cumulative_current == 7000);
}

TEST_CASE("cuda: memory of cuMemCreate lives until its handle is released and it is mapped nowhere") {
  program calls;
  constexpr std::uint64_t handle = 0x1234;
  constexpr std::size_t chunk = std::size_t{2} << 20;
  auto capture = memprof::begin_capture();
  const auto live = [&] { return capture.profile().space("cuda:1").cumulative_current; };
  calls.create(handle, chunk, 1);
  calls.map(a, chunk, handle);
  calls.release(handle);
  CHECK(live() == chunk);
  calls.unmap(a, chunk, invalid_value);
  CHECK(live() == chunk);
  calls.unmap(a, chunk);
  CHECK(live() == 0);
  // Retained, then unmapped together with another one.
  calls.create(handle, chunk, 1);
  calls.create(handle + 1, chunk, 1);
  calls.map(a, chunk, handle);
  calls.map(a + chunk, chunk, handle + 1);
  calls.retain(handle, a);
  calls.release(handle);
  calls.release(handle + 1);
  calls.unmap(a, 2 * chunk);
  CHECK(live() == chunk);
  calls.release(handle, invalid_value);
  CHECK(live() == chunk);
  calls.release(handle);
  CHECK(live() == 0);
  // Released by one call while another fails to unmap it.
  calls.create(handle, chunk, 1);
  calls.map(a, chunk, handle);
  call unmapping{calls.events, driver_call::unmap, interface::unmap_parameters{a, chunk}};
  calls.release(handle);
  CHECK(live() == 0);
  unmapping.end(invalid_value);
  CHECK(live() == chunk);
  calls.unmap(a, chunk);
  CHECK(live() == 0);
  capture.end();
  CHECK(capture.profile().space("cuda:1").anomalies.unmatched_frees.count == 0);
}

TEST_CASE("cuda: what is in a context ends with it") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  calls.alloc(driver_call::alloc_host, 0x1000, 10);
  calls.alloc_async(a + 4096, 200, stream_1);
  calls.alloc_async(a + 8192, 300, stream_1);
  calls.free_async(a + 8192, stream_1);
  calls.alloc(driver_call::alloc, b, 5, 2);
  calls.destroy_context(1);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 0);
  CHECK(profile.space("cuda:0").active.current == 0);
  CHECK(profile.space("pinned").cumulative_current == 0);
  CHECK(profile.space("cuda:1").cumulative_current == 5);
}

TEST_CASE("cuda: blocks count for the operation that is open on the thread") {
  program calls;
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    calls.alloc(driver_call::alloc, a, 1000);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").peak_operation == "forward");
}

TEST_CASE("cuda: a block that the program divides is its parts and what lies between them, until it is freed") {
  program calls;
  const memprof::block_part parts[] = {{0, 100, {.name = "wte", .dtype = "float32", .category = memprof::category::parameter}},
                                       {300, 600, {.name = "h.0.attn"}}};
  auto capture = memprof::begin_capture();
  {
    const memprof::cuda_block_parts divided{parts};
    calls.alloc(driver_call::alloc, a, 5, 1, invalid_value);
    calls.alloc(driver_call::alloc, a, 1000);
    calls.alloc(driver_call::alloc, b, 7);  // the scope is for one
  }
  calls.alloc(driver_call::alloc, b + 512, 11);
  memprof::snapshot("ALLOCATED");
  calls.free(a, driver_call::free, invalid_value);  // from then on a whole again
  const memprof::profile undone = capture.profile();
  CHECK(undone.space("cuda:0").cumulative_current == 1018);
  calls.free(a);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 1018);
  CHECK(space.cumulative_current == 18);
  CHECK(space.anomalies == memprof::space_anomalies{});
  const memprof::vector<memprof::live_block>& largest = space.live_at_peak.largest_blocks;
  REQUIRE(largest.size() == 6);
  CHECK(largest[0].name == "h.0.attn");
  CHECK(largest[0].bytes == 600);
  CHECK(largest[1].name == "rest of the block");
  CHECK(largest[1].bytes == 200);
  CHECK(largest[2].name == "wte");
  CHECK(largest[2].dtype == "float32");
  CHECK(largest[2].category == memprof::category::parameter);
  CHECK(largest[3].bytes == 100);
  CHECK(largest[3].name == "rest of the block");
}

TEST_CASE("cuda: parts of a block come and go, and the rest of it is one block between two of them") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, a, 1000);
  auto& blocks = calls.events.blocks();
  blocks.part_begins(a + 100, 200, {.name = "q", .dtype = "float16"}, nullptr);
  blocks.part_begins(a + 300, 700, {.name = "k"}, nullptr);  // up to the end
  blocks.part_begins(a + 250, 10, {}, nullptr);              // in another part
  blocks.part_begins(a + 50, 51, {}, nullptr);               // into one
  blocks.part_begins(a + 50, 0, {}, nullptr);
  blocks.part_begins(b, 10, {}, nullptr);  // in no block
  CHECK(capture.profile().space("cuda:0").cumulative_peak == 1000);
  calls.alloc(driver_call::alloc, b, 2);  // a new peak
  using named_bytes = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(largest_of(capture.profile()) == named_bytes{{"k", 700}, {"q", 200}, {"rest of the block", 100}, {"", 2}});
  blocks.part_ends(a + 100);
  blocks.part_ends(a + 100);  // it is none any more
  blocks.part_ends(a);
  calls.alloc(driver_call::alloc, b + 512, 1);
  CHECK(largest_of(capture.profile()) == named_bytes{{"k", 700}, {"rest of the block", 300}, {"", 2}, {"", 1}});
  blocks.parts_end(a, 1000);
  calls.free(a);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 1003);
  CHECK(space.cumulative_current == 3);
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("cuda: a part keeps its name when its size changes, and a block with parts is freed as a whole") {
  program calls;
  auto capture = memprof::begin_capture();
  const std::string rest = "arena", name = "cache";
  calls.alloc(driver_call::alloc, a, 1000);
  calls.alloc(driver_call::alloc, b, 50);
  auto& blocks = calls.events.blocks();
  blocks.part_begins(a, 10, {}, &rest);
  blocks.part_is_named(a, &name);
  blocks.part_is_resized(a, 600);
  blocks.part_is_resized(a + 1, 600);  // no part
  blocks.part_begins(b, 50, {.name = "all of it"}, &rest);
  calls.alloc(driver_call::alloc, b + 512, 1);  // a new peak
  CHECK(largest_of(capture.profile()) ==
        std::vector<std::pair<std::string, std::int64_t>>{{"cache", 600}, {"arena", 400}, {"all of it", 50}, {"", 1}});
  calls.free(a, driver_call::free, invalid_value);  // from then on a whole again
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1051);
  blocks.part_begins(a + 500, 500, {.name = "again"}, nullptr);
  calls.free(a);
  blocks.part_ends(a + 500);
  calls.free(b);
  calls.alloc(driver_call::alloc, a, 7);  // the same address
  blocks.part_begins(a, 7, {}, nullptr);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 1051);
  CHECK(space.cumulative_current == 8);
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("cuda: a block of the stream-ordered allocator can have parts, which are on no stream") {
  program calls;
  auto capture = memprof::begin_capture();
  calls.alloc_async(a, 1000, 7);
  calls.events.blocks().part_begins(a + 100, 200, {.name = "q"}, nullptr);
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1000);
  calls.free_async(a, 7);
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 1000);
  CHECK(space.cumulative_current == 0);
  CHECK(space.anomalies == memprof::space_anomalies{});
}

TEST_CASE("cuda: what a capture knows of CUDA is forgotten in the next") {
  program calls;
  {
    auto capture = memprof::begin_capture();
    calls.alloc(driver_call::alloc, a, 1000);
  }
  calls.events.clear(two_devices());
  auto capture = memprof::begin_capture();
  calls.alloc(driver_call::alloc, b, 1);
  calls.free(a);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 1);
  CHECK(profile.space("cuda:0").anomalies.unmatched_frees.count == 1);
}

}  // namespace memprof_tests::cuda
