#include <memprof/detail/error.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_caching_allocator {

using memprof::cached_block;
using memprof::caching_allocator;
using memprof::caching_allocator_options;
using memprof::caching_allocator_stats;
using memprof::segment_action;

namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

std::uint64_t megabytes(std::int64_t count) { return static_cast<std::uint64_t>(count * mib); }

/// The sizes of the blocks that are cached.
std::vector<std::int64_t> cached(const caching_allocator& allocator) {
  std::vector<std::int64_t> sizes;
  allocator.for_each_block([&](const cached_block& block) {
    if (!block.is_active() && block.is_mapped) sizes.push_back(block.bytes);
  });
  return sizes;
}

std::string refusal(const caching_allocator_options& options) {
  try {
    const caching_allocator allocator{options};
  } catch (const memprof::error& fault) {
    return fault.what();
  }
  return {};
}

}  // namespace

// --- sizes --------------------------------------------------------------------------------------------------------------

TEST_CASE("caching allocator: blocks are multiples of 512 bytes") {
  const caching_allocator_options options;
  CHECK(memprof::detail::block_size(options, 0) == 512);
  CHECK(memprof::detail::block_size(options, 1) == 512);
  CHECK(memprof::detail::block_size(options, 512) == 512);
  CHECK(memprof::detail::block_size(options, 513) == 1024);
  CHECK(memprof::detail::block_size(options, mib + 1) == mib + 512);
}

TEST_CASE("caching allocator: sizes are rounded up to the next step between powers of two, if such steps are wanted") {
  CHECK(memprof::detail::rounded_to_division(1200, 4) == 1280);  // the example in PyTorch's source
  caching_allocator_options options;
  options.roundup_power2_divisions.fill(4);
  CHECK(memprof::detail::block_size(options, 2048) == 2048);  // up to 4 x 512 as without
  CHECK(memprof::detail::block_size(options, 1200) == 1536);
  CHECK(memprof::detail::block_size(options, 2049) == 2560);
  CHECK(memprof::detail::block_size(options, 2560) == 2560);
  CHECK(memprof::detail::block_size(options, 4096) == 4096);
  CHECK(memprof::detail::block_size(options, 5 * mib + 1) == 6 * mib);
  CHECK(memprof::detail::block_size(options, 7 * mib + 1) == 8 * mib);
  options.roundup_power2_divisions.fill(1);
  CHECK(memprof::detail::block_size(options, 2049) == 2560);
  CHECK(memprof::detail::block_size(options, 5 * mib + 1) == 5 * mib + 512);
}

TEST_CASE("caching allocator: each interval between powers of two has its own steps") {
  caching_allocator_options options;
  options.roundup_power2_divisions = {0, 2, 8};
  options.roundup_power2_divisions[15] = 4;
  CHECK(memprof::detail::block_size(options, 2 * mib - 1000) == 2 * mib - 512);     // [0]: all below 2 MiB
  CHECK(memprof::detail::block_size(options, 2 * mib + 1) == 3 * mib);              // [1]: from 2 MiB
  CHECK(memprof::detail::block_size(options, 4 * mib + 1) == 4 * mib + 512 * kib);  // [2]: from 4 MiB
  CHECK(memprof::detail::block_size(options, 8 * mib + 1) == 8 * mib + 512);
  CHECK(memprof::detail::block_size(options, 256 * kib * mib + 1) == 320 * kib * mib);  // [15]: also from 256 GiB
}

TEST_CASE("caching allocator: a segment has 2 MiB for blocks up to 1 MiB, 20 MiB for those below 10 MiB, else whole 2 MiB") {
  caching_allocator_options options;
  CHECK(memprof::detail::segment_size(options, 512) == 2 * mib);
  CHECK(memprof::detail::segment_size(options, mib) == 2 * mib);
  CHECK(memprof::detail::segment_size(options, mib + 512) == 20 * mib);
  CHECK(memprof::detail::segment_size(options, 10 * mib - 512) == 20 * mib);
  CHECK(memprof::detail::segment_size(options, 10 * mib) == 10 * mib);
  CHECK(memprof::detail::segment_size(options, 10 * mib + 512) == 12 * mib);
  options.large_segment_size = 32 * mib;
  CHECK(memprof::detail::segment_size(options, mib + 512) == 32 * mib);
  CHECK(memprof::detail::segment_size(options, 10 * mib) == 10 * mib);
}

// --- blocks -------------------------------------------------------------------------------------------------------------

TEST_CASE("caching allocator: a first request reserves a segment and splits it") {
  caching_allocator allocator;
  const cached_block* const block = allocator.allocate(1000);
  REQUIRE(block != nullptr);
  CHECK(block->bytes == 1024);
  CHECK(block->requested == 1000);
  caching_allocator_stats expected;
  expected.allocation.increase(1);
  expected.segment.increase(1);
  expected.requested_bytes.increase(1000);
  expected.allocated_bytes.increase(1024);
  expected.active_bytes.increase(1024);
  expected.reserved_bytes.increase(2 * mib);
  expected.inactive_split_bytes.increase(2 * mib - 1024);
  expected.num_device_alloc = 1;
  CHECK(allocator.stats() == expected);

  allocator.deallocate(block);
  expected.allocation.decrease(1);
  expected.requested_bytes.decrease(1000);
  expected.allocated_bytes.decrease(1024);
  expected.active_bytes.decrease(1024);
  expected.inactive_split_bytes.decrease(2 * mib - 1024);
  CHECK(allocator.stats() == expected);
  CHECK(cached(allocator) == std::vector<std::int64_t>{2 * mib});
}

TEST_CASE("caching allocator: small and large requests never share a segment") {
  caching_allocator allocator;
  const cached_block* const small = allocator.allocate(megabytes(1));
  const cached_block* const large = allocator.allocate(megabytes(1) + 1);
  CHECK(allocator.stats().reserved_bytes.current == 22 * mib);
  CHECK(allocator.stats_of_pools(true).reserved_bytes.current == 2 * mib);
  CHECK(allocator.stats_of_pools(false).reserved_bytes.current == 20 * mib);
  CHECK(allocator.stats_of_pools(true).requested_bytes.peak == mib);
  CHECK(allocator.stats_of_pools(false).requested_bytes.peak == mib + 1);
  allocator.deallocate(large);
  CHECK(allocator.stats_of_pools(false).allocation == memprof::allocator_stat{0, 1, 1, 1});
  (void)allocator.allocate(megabytes(1));  // beside the first, not in the 20 MiB
  (void)allocator.allocate(512);           // nor there is it looked for, now that the 2 MiB are full
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
  CHECK(small->pool->is_small());
  CHECK_FALSE(large->pool->is_small());
}

TEST_CASE("caching allocator: a rest of 512 bytes is split off in the small pool, in the large one only more than 1 MiB") {
  caching_allocator allocator;
  (void)allocator.allocate(megabytes(1));
  CHECK(allocator.allocate(megabytes(1) - 512)->bytes == mib - 512);
  CHECK(allocator.stats().inactive_split_bytes.current == 512);

  CHECK(allocator.allocate(megabytes(11))->bytes == 12 * mib);  // a rest of just 1 MiB: the whole block is charged
  CHECK(allocator.allocate(megabytes(11) - 512)->bytes == 11 * mib - 512);
  CHECK(allocator.stats().requested_bytes.current == 24 * mib - 1024);
  CHECK(allocator.stats().allocated_bytes.current == 25 * mib - 1024);
  CHECK(allocator.stats().reserved_bytes.current == 26 * mib);
}

TEST_CASE("caching allocator: the smallest free block that suffices serves a request, of equal ones the lowest") {
  caching_allocator allocator;
  const cached_block* const first = allocator.allocate(megabytes(40));
  const cached_block* const second = allocator.allocate(megabytes(24));
  const cached_block* const third = allocator.allocate(megabytes(24));
  const std::uint64_t lower = second->address;
  const std::uint64_t upper = third->address;
  CHECK(lower < upper);
  for (const cached_block* const block : {third, first, second}) allocator.deallocate(block);
  CHECK(allocator.allocate(megabytes(23))->address == lower);
  CHECK(allocator.allocate(megabytes(23))->address == upper);
  CHECK(allocator.allocate(megabytes(23))->bytes == 23 * mib);  // of the 40
  CHECK(allocator.stats().reserved_bytes.current == 88 * mib);
}

TEST_CASE("caching allocator: a free block serves only its own stream") {
  caching_allocator allocator;
  const cached_block* const block = allocator.allocate(megabytes(30), 1);
  const std::uint64_t address = block->address;
  allocator.deallocate(block);
  CHECK(allocator.allocate(megabytes(30), 0)->address != address);
  CHECK(allocator.allocate(megabytes(30), 2)->address != address);
  CHECK(allocator.allocate(megabytes(30), 1)->address == address);
  CHECK(allocator.stats().reserved_bytes.current == 90 * mib);
}

TEST_CASE("caching allocator: a freed block joins the free ones on both sides") {
  caching_allocator allocator;
  std::vector<const cached_block*> blocks;
  for (int count = 0; count < 4; ++count) blocks.push_back(allocator.allocate(megabytes(4)));  // and 4 MiB are left of 20
  allocator.deallocate(blocks[0]);
  allocator.deallocate(blocks[2]);
  CHECK(cached(allocator).size() == 3);
  CHECK(allocator.stats().inactive_split_bytes.current == 12 * mib);
  allocator.deallocate(blocks[1]);
  CHECK(cached(allocator).size() == 2);  // 12 MiB; and the rest behind the last block
  CHECK(allocator.stats().inactive_split_bytes.current == 16 * mib);
  allocator.deallocate(blocks[3]);
  CHECK(cached(allocator) == std::vector<std::int64_t>{20 * mib});
  CHECK(allocator.stats().inactive_split_bytes.current == 0);
  CHECK(allocator.stats().inactive_split_bytes.peak == 16 * mib);
}

// --- max_split_size -----------------------------------------------------------------------------------------------------

TEST_CASE("caching allocator: a block of max_split_size serves no smaller request, and a larger one if little is lost") {
  caching_allocator allocator{{.max_split_size = 64 * mib}};
  const cached_block* block = allocator.allocate(megabytes(100));
  const std::uint64_t address = block->address;
  allocator.deallocate(block);
  CHECK(allocator.allocate(megabytes(30))->address != address);
  CHECK(allocator.allocate(megabytes(80))->address != address);  // 100 is not below 80 + 20
  block = allocator.allocate(megabytes(81));
  CHECK(block->address == address);
  CHECK(block->bytes == 100 * mib);  // not split
  CHECK(allocator.stats().reserved_bytes.current == 210 * mib);
}

TEST_CASE("caching allocator: max_non_split_rounding is by how much a block that is not split may be too large") {
  caching_allocator allocator{{.max_split_size = 64 * mib, .max_non_split_rounding = 40 * mib}};
  const cached_block* const block = allocator.allocate(megabytes(120));
  const std::uint64_t address = block->address;
  allocator.deallocate(block);
  CHECK(allocator.allocate(megabytes(80))->address != address);
  CHECK(allocator.allocate(megabytes(82))->address == address);
}

TEST_CASE("caching allocator: before all cached blocks are given back, those that are not split are, as many as are needed") {
  caching_allocator allocator{{.capacity = 300 * mib, .max_split_size = 64 * mib}};
  std::vector<const cached_block*> blocks;
  for (const int size : {70, 80, 100}) blocks.push_back(allocator.allocate(megabytes(size)));
  const cached_block* const whole = allocator.allocate(megabytes(40));
  allocator.deallocate(whole);
  for (const cached_block* const block : blocks) allocator.deallocate(block);
  CHECK(allocator.stats().reserved_bytes.current == 290 * mib);
  REQUIRE(allocator.allocate(megabytes(140)) != nullptr);  // 100 is too little, 80 more suffice
  CHECK(allocator.stats().reserved_bytes.current == (70 + 40 + 140) * mib);
  CHECK(allocator.stats().num_device_free == 2);
  CHECK(allocator.stats().num_alloc_retries == 0);
}

TEST_CASE("caching allocator: of the blocks that are not split one is given back if it alone is large enough") {
  caching_allocator allocator{{.capacity = 300 * mib, .max_split_size = 64 * mib}};
  const cached_block* const first = allocator.allocate(megabytes(100));
  const cached_block* const second = allocator.allocate(megabytes(150));
  allocator.deallocate(first);
  allocator.deallocate(second);
  REQUIRE(allocator.allocate(megabytes(78)) != nullptr);  // both are 20 MiB larger or more
  CHECK(cached(allocator) == std::vector<std::int64_t>{150 * mib});
  CHECK(allocator.stats().num_alloc_retries == 0);
}

// --- a device that is full ----------------------------------------------------------------------------------------------

TEST_CASE("caching allocator: a full device makes whole cached segments be given back before a request fails") {
  caching_allocator allocator{{.capacity = 100 * mib}};
  const cached_block* const large = allocator.allocate(megabytes(60));
  REQUIRE(allocator.allocate(megabytes(30)) != nullptr);
  CHECK(allocator.allocate(megabytes(20)) == nullptr);
  CHECK(allocator.stats().num_ooms == 1);
  CHECK(allocator.stats().num_alloc_retries == 1);
  CHECK(allocator.stats().num_device_free == 0);

  allocator.deallocate(large);
  CHECK(allocator.allocate(megabytes(70)) != nullptr);
  CHECK(allocator.stats().reserved_bytes.current == 100 * mib);
  CHECK(allocator.stats().reserved_bytes.peak == 100 * mib);
  CHECK(allocator.stats().num_alloc_retries == 2);
  CHECK(allocator.stats().num_device_free == 1);
  CHECK(allocator.stats().num_ooms == 1);
}

TEST_CASE("caching allocator: a segment with a block in use is not given back, however little it is") {
  caching_allocator allocator{{.capacity = 30 * mib}};
  REQUIRE(allocator.allocate(megabytes(2)) != nullptr);
  CHECK(allocator.allocate(megabytes(19)) == nullptr);  // 18 MiB are cached behind it, 10 are left
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);
  CHECK(allocator.allocate(megabytes(18)) != nullptr);
}

TEST_CASE("caching allocator: per_process_memory_fraction is the part of the device that may be reserved") {
  caching_allocator allocator{{.capacity = 100 * mib, .per_process_memory_fraction = 0.5}};
  CHECK(allocator.allocate(megabytes(52)) == nullptr);
  CHECK(allocator.allocate(megabytes(50)) != nullptr);
  CHECK(allocator.allocate(1) == nullptr);
}

TEST_CASE("caching allocator: with a fraction, segments that were free for longer than average are given back first") {
  // 200 of 500 MiB are the threshold. The second stream's requests find nothing and so age the first one's blocks.
  caching_allocator_options options{
      .capacity = 1000 * mib, .per_process_memory_fraction = 0.5, .garbage_collection_threshold = 0.4};
  SECTION("as many as bring the rest below the threshold") {
    caching_allocator allocator{options};
    const cached_block* const older = allocator.allocate(megabytes(60));
    const cached_block* const newer = allocator.allocate(megabytes(62));
    allocator.deallocate(older);
    (void)allocator.allocate(megabytes(40), 2);
    allocator.deallocate(newer);
    (void)allocator.allocate(megabytes(60), 2);
    CHECK(allocator.stats().num_device_free == 0);  // 162 MiB were not above it
    (void)allocator.allocate(megabytes(30), 2);     // 222 are; the ages are 3 and 2, their average 2.5
    CHECK(allocator.stats().num_device_free == 1);
    CHECK(cached(allocator) == std::vector<std::int64_t>{62 * mib});
    CHECK(allocator.stats().reserved_bytes.current == (62 + 40 + 60 + 30) * mib);
    CHECK(allocator.stats().num_alloc_retries == 0);
  }
  SECTION("not at all without a fraction") {
    options.per_process_memory_fraction = 1;
    caching_allocator allocator{options};
    allocator.deallocate(allocator.allocate(megabytes(900)));
    (void)allocator.allocate(megabytes(50), 2);
    CHECK(allocator.stats().num_device_free == 0);
  }
}

TEST_CASE("caching allocator: requests that no device could serve fail, and sums of bytes do not overflow") {
  caching_allocator allocator;
  int served = 0;
  while (allocator.allocate(std::numeric_limits<std::uint64_t>::max()) != nullptr) ++served;
  CHECK(served == 4);  // of 2^60 bytes each
  CHECK(allocator.stats().reserved_bytes.current == std::int64_t{1} << 62);
  CHECK(allocator.stats().num_ooms == 1);

  caching_allocator limited{{.capacity = mib}};
  CHECK(limited.allocate(std::numeric_limits<std::uint64_t>::max()) == nullptr);
  CHECK(limited.stats().reserved_bytes.peak == 0);
}

TEST_CASE("caching allocator: addresses are never given twice, so that they end one day") {
  caching_allocator allocator;
  std::uint64_t last = 0;
  int served = 0;
  for (const cached_block* block = allocator.allocate(std::uint64_t{1} << 60); block != nullptr && served < 100; ++served) {
    CHECK(block->address > last);
    last = block->address;
    allocator.deallocate(block);
    allocator.empty_cache();
    block = allocator.allocate(std::uint64_t{1} << 60);
  }
  CHECK(served == 7);  // below 2^63
}

TEST_CASE("caching allocator: where addresses cannot descend any further, they ascend") {
  caching_allocator allocator{{.descending_addresses = true}};
  const cached_block* const first = allocator.allocate(std::uint64_t{3} << 43);
  const cached_block* const second = allocator.allocate(std::uint64_t{3} << 43);  // 48 TiB of 32
  const cached_block* const third = allocator.allocate(std::uint64_t{1} << 40);
  REQUIRE((first != nullptr && second != nullptr && third != nullptr));
  CHECK(first->address < std::uint64_t{1} << 45);
  CHECK(second->address == std::uint64_t{1} << 45);
  CHECK(third->address < first->address);
  CHECK(allocator.allocate((std::uint64_t{1} << 60) - 1) != nullptr);
  CHECK(allocator.stats().num_ooms == 0);
}

TEST_CASE("caching allocator: a withdrawn block leaves its segment, and is not among the sums") {
  caching_allocator allocator;
  allocator.withdraw(allocator.allocate(megabytes(5)));
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);
  CHECK(allocator.stats().allocation == memprof::allocator_stat{0, 1, 0, 0});
  CHECK(allocator.stats().requested_bytes == memprof::allocator_stat{0, 5 * mib, 0, 0});
  CHECK(allocator.stats().active_bytes == memprof::allocator_stat{0, 5 * mib, 0, 0});
  CHECK(allocator.allocate(megabytes(5)) != nullptr);
  CHECK(allocator.stats().allocation == memprof::allocator_stat{1, 1, 1, 0});
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);
}

// --- giving back --------------------------------------------------------------------------------------------------------

TEST_CASE("caching allocator: empty_cache gives back segments without a block in use, and peaks begin anew when they are reset") {
  caching_allocator allocator;
  const cached_block* const kept = allocator.allocate(megabytes(2));
  allocator.deallocate(allocator.allocate(megabytes(50)));
  allocator.deallocate(allocator.allocate(100));
  CHECK(allocator.stats().reserved_bytes.current == 72 * mib);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 20 * mib);
  CHECK(allocator.stats().num_device_free == 2);
  CHECK(allocator.stats().num_alloc_retries == 0);
  CHECK(allocator.stats().segment == memprof::allocator_stat{1, 3, 3, 2});
  allocator.reset_peak_stats();
  allocator.reset_accumulated_stats();
  CHECK(allocator.stats().segment == memprof::allocator_stat{1, 1, 0, 0});
  CHECK(allocator.stats().reserved_bytes.peak == 20 * mib);
  CHECK(allocator.stats().allocated_bytes.peak == 2 * mib);
  allocator.deallocate(kept);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 0);
  CHECK(cached(allocator).empty());
}

TEST_CASE("caching allocator: a block that another stream used stays active until streams are synchronized") {
  caching_allocator allocator;
  const cached_block* const block = allocator.allocate(megabytes(12));
  allocator.record_stream(block, 7);
  allocator.deallocate(block);
  CHECK(allocator.stats().allocated_bytes.current == 0);
  CHECK(allocator.stats().active_bytes.current == 12 * mib);
  CHECK(allocator.stats().requested_bytes.current == 12 * mib);
  (void)allocator.allocate(megabytes(12));
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
  allocator.synchronize();
  CHECK(allocator.stats().active_bytes.current == 12 * mib);
  (void)allocator.allocate(megabytes(12));
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
}

TEST_CASE("caching allocator: a use on the block's own stream changes nothing, and a full device synchronizes streams") {
  caching_allocator allocator{{.capacity = 24 * mib}};
  const cached_block* block = allocator.allocate(megabytes(12), 3);
  allocator.record_stream(block, 3);
  allocator.deallocate(block);
  CHECK(allocator.stats().active_bytes.current == 0);
  block = allocator.allocate(megabytes(12), 3);
  allocator.record_stream(block, 4);
  allocator.deallocate(block);
  CHECK(allocator.allocate(megabytes(20)) != nullptr);
  CHECK(allocator.stats().num_alloc_retries == 1);
}

TEST_CASE("caching allocator: a pool's blocks serve only the pool and are kept until it is released") {
  caching_allocator allocator{{.capacity = 40 * mib}};
  const auto pool = allocator.make_pool();
  allocator.deallocate(allocator.allocate(megabytes(12), 0, pool));
  const cached_block* const other = allocator.allocate(megabytes(12));
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
  CHECK(allocator.allocate(megabytes(12), 0, pool) != nullptr);
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);

  allocator.deallocate(other);
  CHECK(allocator.allocate(megabytes(20), 0, pool) == nullptr);  // though the others' 12 MiB could be given back
  CHECK(allocator.stats().num_alloc_retries == 0);
  CHECK(allocator.stats().reserved_bytes.current == 24 * mib);
}

TEST_CASE("caching allocator: a released pool gives back what it has cached") {
  caching_allocator allocator;
  const auto pool = allocator.make_pool();
  const cached_block* const kept = allocator.allocate(megabytes(12), 0, pool);
  allocator.deallocate(allocator.allocate(100, 0, pool));
  allocator.release_pool(pool);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 12 * mib);
  allocator.deallocate(kept);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved_bytes.current == 0);
}

TEST_CASE("caching allocator: every segment is reported when it is reserved and when it is given back") {
  std::vector<std::pair<segment_action, std::int64_t>> reported;
  std::vector<std::uint64_t> addresses;
  caching_allocator allocator{{}, [&](segment_action action, std::uint64_t address, std::int64_t bytes) {
                                reported.emplace_back(action, bytes);
                                addresses.push_back(address);
                              }};
  const cached_block* const block = allocator.allocate(megabytes(30));
  (void)allocator.allocate(1);
  (void)allocator.allocate(1);
  const std::uint64_t address = block->address;
  allocator.deallocate(block);
  allocator.empty_cache();
  CHECK(reported == std::vector<std::pair<segment_action, std::int64_t>>{{segment_action::reserve, 30 * mib},
                                                                         {segment_action::reserve, 2 * mib},
                                                                         {segment_action::release, 30 * mib}});
  CHECK(addresses.front() == address);
  CHECK(addresses.back() == address);
}

TEST_CASE("caching allocator: as events, its segments are what the ledger finds reserved") {
  for (const bool is_expandable : {false, true}) {
    memprof::extend::ledger ledger;
    const auto tell = [&](segment_action action, std::uint64_t address, std::int64_t bytes) {
      const auto kind =
          action == segment_action::reserve ? memprof::extend::event_kind::reserve : memprof::extend::event_kind::release;
      const memprof::extend::event recorded{0, address, static_cast<std::uint64_t>(bytes), 0, kind, 0, 0};
      ledger.apply(&recorded, &recorded + 1, 0);
    };
    caching_allocator allocator{{.capacity = 200 * mib, .expandable_segments = is_expandable}, tell};
    std::vector<const cached_block*> blocks;
    for (const int size : {3, 60, 25, 8, 40, 1}) blocks.push_back(allocator.allocate(megabytes(size)));
    for (const std::size_t freed : {1, 3, 4}) allocator.deallocate(blocks[freed]);
    CHECK(allocator.allocate(megabytes(120)) != nullptr);
    CHECK(allocator.stats().num_device_free > 0);
    CHECK(ledger.space(0)->reserved().current() == allocator.stats().reserved_bytes.current);
    CHECK(ledger.space(0)->reserved().peak() == allocator.stats().reserved_bytes.peak);
    CHECK(ledger.space(0)->reserved().unmatched_releases.count == 0);
  }
}

TEST_CASE("caching allocator: options that cannot be are refused with the rule") {
  CHECK(refusal({}).empty());
  CHECK(refusal({.capacity = -1}).find("capacity") != std::string::npos);
  CHECK(refusal({.per_process_memory_fraction = 0}).find("per_process_memory_fraction") != std::string::npos);
  CHECK(refusal({.per_process_memory_fraction = std::numeric_limits<double>::quiet_NaN()}).find("fraction") != std::string::npos);
  CHECK(refusal({.garbage_collection_threshold = 1}).find("garbage_collection_threshold") != std::string::npos);
  CHECK(refusal({.max_split_size = 0}).find("max_split_size") != std::string::npos);
  CHECK(refusal({.max_split_size = 20 * mib - 1}).find("at least large_segment_size") != std::string::npos);
  CHECK(refusal({.max_split_size = 20 * mib}).empty());
  CHECK(refusal({.max_split_size = 20 * mib, .large_segment_size = 64 * mib}).find("at least large_segment_size") !=
        std::string::npos);
  CHECK(refusal({.large_segment_size = 0}).find("large_segment_size") != std::string::npos);
  caching_allocator_options options;
  options.roundup_power2_divisions[3] = 6;
  CHECK(refusal(options).find("powers of two") != std::string::npos);
}

}  // namespace memprof_tests::analysis_caching_allocator
