#include <memprof/toolkit/analysis/caching_allocator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_expandable_segments {

using memprof::cached_block;
using memprof::caching_allocator;
using memprof::segment_action;

namespace {

constexpr std::int64_t mib = 1 << 20;

std::uint64_t megabytes(std::int64_t count) { return static_cast<std::uint64_t>(count * mib); }

std::int64_t offset(const cached_block* block) { return static_cast<std::int64_t>(block->address - block->expandable_base); }

}  // namespace

TEST_CASE("expandable segments: memory is mapped in pages of 20 MiB behind the addresses that are in use") {
  caching_allocator allocator{{.expandable_segments = true}};
  const cached_block* const first = allocator.allocate(megabytes(3));
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);
  const cached_block* const second = allocator.allocate(megabytes(25));  // 17 MiB are there, 8 are missing
  CHECK(allocator.stats().reserved_bytes.current == 40 * mib);
  CHECK(second->address == first->address + megabytes(3));
  CHECK(second->bytes == 25 * mib);
  const cached_block* const third = allocator.allocate(megabytes(60));  // 12 MiB are there, 48 are missing
  CHECK(allocator.stats().reserved_bytes.current == 100 * mib);
  CHECK(offset(third) == 28 * mib);
  CHECK(allocator.stats().num_device_alloc == 3);
  CHECK(allocator.stats().allocated_bytes.current == 88 * mib);
  CHECK(allocator.stats().inactive_split_bytes.current == 0);  // they do not count there
}

TEST_CASE("expandable segments: small requests have a segment of their own with pages of 2 MiB, and so has each stream") {
  caching_allocator allocator{{.expandable_segments = true}};
  const cached_block* const small = allocator.allocate(megabytes(1));
  (void)allocator.allocate(megabytes(1));
  CHECK(allocator.stats().reserved_bytes.current == 2 * mib);
  CHECK(offset(allocator.allocate(512)) == 2 * mib);
  CHECK(allocator.stats().reserved_bytes.current == 4 * mib);
  const cached_block* const large = allocator.allocate(megabytes(2));
  CHECK(large->expandable_base != small->expandable_base);
  CHECK(allocator.allocate(megabytes(2), 1)->expandable_base != large->expandable_base);
  CHECK(allocator.stats().reserved_bytes.current == 44 * mib);
}

TEST_CASE("expandable segments: large_segment_size is the size of the large pages") {
  caching_allocator allocator{{.large_segment_size = 12 * mib, .expandable_segments = true}};
  (void)allocator.allocate(megabytes(13));
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
}

TEST_CASE("expandable segments: a rest of 512 bytes is split off large blocks too") {
  caching_allocator allocator{{.expandable_segments = true}};
  CHECK(allocator.allocate(megabytes(20) - 512)->bytes == 20 * mib - 512);
  CHECK(allocator.allocate(megabytes(2))->bytes == 2 * mib);
  CHECK(allocator.stats().reserved_bytes.current == 40 * mib);
}

TEST_CASE(
    "expandable segments: a free block at the end counts with the addresses behind it, so that one between others is taken") {
  caching_allocator allocator{{.expandable_segments = true}};
  const cached_block* const hole = allocator.allocate(megabytes(8));
  (void)allocator.allocate(megabytes(7));  // 5 MiB are free behind it
  allocator.deallocate(hole);
  CHECK(offset(allocator.allocate(megabytes(4))) == 0);
  CHECK(offset(allocator.allocate(megabytes(5))) == 15 * mib);
}

TEST_CASE("expandable segments: a full device takes whole pages out of free blocks, and they are filled again first") {
  std::vector<std::pair<segment_action, std::int64_t>> reported;
  const auto record = [&](segment_action action, std::uint64_t, std::int64_t bytes) { reported.emplace_back(action, bytes); };
  caching_allocator allocator{{.capacity = 80 * mib, .expandable_segments = true}, record};
  const cached_block* const first = allocator.allocate(megabytes(30));  // [0, 30) of 40
  (void)allocator.allocate(megabytes(25));                              // [30, 55) of 60
  allocator.deallocate(first);
  // 30 MiB are free in front and 5 behind, where 30 more would need 40. The first page goes; then there is room.
  const cached_block* const third = allocator.allocate(megabytes(35));
  REQUIRE(third != nullptr);
  CHECK(offset(third) == 55 * mib);
  CHECK(allocator.stats().reserved_bytes.current == 80 * mib);
  CHECK(allocator.stats().num_device_free == 1);
  CHECK(allocator.stats().num_alloc_retries == 1);
  allocator.deallocate(third);
  // 10 MiB are mapped in front, in [20, 30), and 45 behind.
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 40 * mib);  // [20, 60) has blocks in use
  const cached_block* const fourth = allocator.allocate(megabytes(15));
  CHECK(offset(fourth) == 0);
  CHECK(allocator.stats().reserved_bytes.current == 60 * mib);
  CHECK(reported == std::vector<std::pair<segment_action, std::int64_t>>{{segment_action::reserve, 40 * mib},
                                                                         {segment_action::reserve, 20 * mib},
                                                                         {segment_action::release, 20 * mib},
                                                                         {segment_action::reserve, 40 * mib},
                                                                         {segment_action::release, 40 * mib},
                                                                         {segment_action::reserve, 20 * mib}});
}

TEST_CASE("expandable segments: pages that were mapped for a request that fails stay") {
  caching_allocator allocator{{.capacity = 60 * mib, .expandable_segments = true}};
  const cached_block* const first = allocator.allocate(megabytes(20));
  const cached_block* const second = allocator.allocate(megabytes(20));
  const cached_block* const third = allocator.allocate(megabytes(20));
  allocator.deallocate(first);
  allocator.deallocate(third);
  CHECK(allocator.allocate(megabytes(50)) == nullptr);
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);  // all that is free was given back, and 60 more cannot be mapped
  CHECK(allocator.allocate(megabytes(40)) != nullptr);
  CHECK(second->bytes == 20 * mib);
  CHECK(allocator.stats().num_ooms == 1);
}

TEST_CASE("expandable segments: a segment without memory gives its addresses back") {
  caching_allocator allocator{{.expandable_segments = true}};
  allocator.deallocate(allocator.allocate(megabytes(30)));
  allocator.deallocate(allocator.allocate(100));
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 0);
  int blocks = 0;
  allocator.for_each_block([&](const cached_block&) { ++blocks; });
  CHECK(blocks == 0);
}

TEST_CASE("expandable segments: a segment has addresses for 9/8 of the device, and then there is another one") {
  caching_allocator allocator{{.capacity = 160 * mib, .expandable_segments = true}};
  const cached_block* const first = allocator.allocate(megabytes(60));   // [0, 60)
  const cached_block* const second = allocator.allocate(megabytes(20));  // [60, 80)
  (void)allocator.allocate(megabytes(60));                               // [80, 140)
  allocator.deallocate(first);
  // 180 MiB are addressed: behind the 140 there are 40, in front 60. The retry unmaps the 60 in front.
  const cached_block* const other = allocator.allocate(megabytes(70));
  REQUIRE(other != nullptr);
  CHECK(other->expandable_base != second->expandable_base);
  CHECK(allocator.stats().reserved_bytes.current == 160 * mib);
}

TEST_CASE("expandable segments: without a limit their addresses last for more than a million times empty_cache") {
  caching_allocator allocator{{.expandable_segments = true}};
  int served = 0;
  for (; served < 1'000'000; ++served) {
    const cached_block* const block = allocator.allocate(megabytes(5));
    if (block == nullptr) break;
    allocator.deallocate(block);
    allocator.empty_cache();
  }
  CHECK(served == 1'000'000);
}

TEST_CASE("expandable segments: a request that exceeds the addresses of a segment fails") {
  caching_allocator allocator{{.expandable_segments = true, .expandable_segment_range = 40 * mib}};
  CHECK(allocator.allocate(megabytes(41)) == nullptr);
  CHECK(allocator.allocate(megabytes(40)) != nullptr);
  CHECK(allocator.allocate(megabytes(40)) != nullptr);
}

TEST_CASE("expandable segments: per_process_memory_fraction counts a request as if it had a segment of a fixed size") {
  caching_allocator allocator{{.capacity = 100 * mib, .per_process_memory_fraction = 0.5, .expandable_segments = true}};
  CHECK(allocator.allocate(megabytes(30)) != nullptr);  // 40 MiB are reserved
  CHECK(allocator.allocate(megabytes(12)) == nullptr);  // 12 MiB more would be too much, though 10 of them are cached
  CHECK(allocator.allocate(megabytes(10)) != nullptr);
}

TEST_CASE("expandable segments: without a fraction a request fails only if its pages do not fit") {
  caching_allocator allocator{{.capacity = 65 * mib, .expandable_segments = true}};
  CHECK(allocator.allocate(megabytes(16)) != nullptr);
  CHECK(allocator.allocate(megabytes(8)) != nullptr);   // of 40 MiB
  CHECK(allocator.allocate(megabytes(27)) != nullptr);  // 16 are cached and 20 more suffice: a segment of 28 would be too much
  CHECK(allocator.stats().num_alloc_retries == 0);
}

}  // namespace memprof_tests::analysis_expandable_segments
