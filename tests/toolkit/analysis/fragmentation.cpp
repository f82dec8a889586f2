#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memprof_tests::analysis_fragmentation {

using memprof::cached_block;
using memprof::caching_allocator;
using memprof::caching_allocator_options;
using memprof::fragmentation;
using memprof::fragmentation_of;

namespace {

constexpr std::int64_t mib = 1 << 20;

const cached_block* take(caching_allocator& allocator, std::int64_t bytes, std::uint64_t stream = 0) {
  return allocator.allocate(static_cast<std::uint64_t>(bytes), stream);
}

}  // namespace

TEST_CASE("fragmentation: an allocator without segments has none") {
  CHECK(fragmentation_of(caching_allocator{}) == fragmentation{});
}

TEST_CASE("fragmentation: what is free between two blocks of a segment is hard, at its end soft") {
  caching_allocator allocator;
  allocator.deallocate(take(allocator, 60 * mib));  // a segment that the next four divide
  take(allocator, 15 * mib);
  const cached_block* const between = take(allocator, 15 * mib);
  take(allocator, 15 * mib);
  allocator.deallocate(between);
  CHECK(fragmentation_of(allocator) == fragmentation{.reserved = 60 * mib, .live = 30 * mib, .hard = 15 * mib, .soft = 15 * mib});
}

TEST_CASE("fragmentation: free segments, and free beginnings of segments, are soft") {
  caching_allocator allocator;
  const cached_block* const whole = take(allocator, 30 * mib);
  allocator.deallocate(take(allocator, 40 * mib));
  const cached_block* const first = take(allocator, 20 * mib);
  take(allocator, 20 * mib);
  allocator.deallocate(whole);
  allocator.deallocate(first);
  CHECK(fragmentation_of(allocator) == fragmentation{.reserved = 70 * mib, .live = 20 * mib, .soft = 50 * mib});
}

TEST_CASE("fragmentation: what another stream or pool has free is of the cause stream, whole segment or not") {
  caching_allocator allocator;
  allocator.deallocate(take(allocator, 30 * mib, 7));
  allocator.deallocate(take(allocator, 50 * mib, 8));
  take(allocator, 20 * mib, 8);
  const caching_allocator::pool_id graph = allocator.make_pool();
  allocator.deallocate(allocator.allocate(12 * mib, 7, graph));
  CHECK(fragmentation_of(allocator, 7) ==
        fragmentation{.reserved = 92 * mib, .live = 20 * mib, .soft = 30 * mib, .stream = 42 * mib});
  CHECK(fragmentation_of(allocator, 7, graph) ==
        fragmentation{.reserved = 92 * mib, .live = 20 * mib, .soft = 12 * mib, .stream = 60 * mib});
  CHECK(fragmentation_of(allocator, 9) == fragmentation{.reserved = 92 * mib, .live = 20 * mib, .stream = 72 * mib});
}

TEST_CASE(
    "fragmentation: a freed block that a stream may still use is pending, and separates what is free as a block in use does") {
  caching_allocator allocator;
  allocator.deallocate(take(allocator, 60 * mib));
  take(allocator, 15 * mib);
  const cached_block* const between = take(allocator, 15 * mib);
  const cached_block* const used = take(allocator, 15 * mib);
  allocator.record_stream(used, 3);
  allocator.deallocate(used);
  allocator.deallocate(between);
  CHECK(fragmentation_of(allocator) ==
        fragmentation{.reserved = 60 * mib, .live = 15 * mib, .pending = 15 * mib, .hard = 15 * mib, .soft = 15 * mib});
  allocator.complete(used);
  CHECK(fragmentation_of(allocator) == fragmentation{.reserved = 60 * mib, .live = 15 * mib, .soft = 45 * mib});
  allocator.complete(used);  // once is enough
  CHECK(fragmentation_of(allocator).soft == 45 * mib);
}

TEST_CASE("fragmentation: what a block has beyond its request is rounding") {
  caching_allocator allocator;
  take(allocator, 19 * mib + 100);  // 20 MiB, whose rest is too small to be split off
  take(allocator, 100);             // 512 bytes of 2 MiB
  CHECK(fragmentation_of(allocator) ==
        fragmentation{.reserved = 22 * mib, .live = 19 * mib + 200, .rounding = mib - 100 + 412, .soft = 2 * mib - 512});
}

TEST_CASE("fragmentation: unmapped pages of an expandable segment end what is free") {
  caching_allocator allocator{{.expandable_segments = true}};
  take(allocator, 20 * mib);
  const cached_block* const free = take(allocator, 70 * mib);
  take(allocator, 30 * mib);
  allocator.deallocate(free);
  CHECK(fragmentation_of(allocator) == fragmentation{.reserved = 120 * mib, .live = 50 * mib, .hard = 70 * mib});
  allocator.empty_cache();  // 60 MiB of it are whole pages of 20 MiB: from 20 to 80
  CHECK(fragmentation_of(allocator) == fragmentation{.reserved = 60 * mib, .live = 50 * mib, .soft = 10 * mib});
}

// --- pytorch/pytorch issue 123548 -----------------------------------------------------------------------------------------

namespace {

/// The program of the comment of 2026-08-13, on a Radeon RX 9070 XT with PyTorch 2.12: 64 MiB stay, and each cycle allocates 91
/// and 45.5 MiB, then 2 MiB that stay, and frees the first two.
class growing_program {
 public:
  growing_program(std::string_view settings, std::int64_t capacity) : allocator_{options_of(settings, capacity)} {
    take(allocator_, 64 * mib);
  }

  void cycle() {
    const cached_block* const first = take(allocator_, 91 * mib);
    const cached_block* const second = take(allocator_, 91 * mib / 2);
    take(allocator_, 2 * mib);
    allocator_.deallocate(first);
    allocator_.deallocate(second);
  }

  /// In MiB, after each 20th cycle of 101, as published.
  [[nodiscard]] std::vector<std::int64_t> reserved() {
    std::vector<std::int64_t> series;
    for (int index = 0; index <= 100; ++index) {
      cycle();
      if (index % 20 == 0) series.push_back(allocator_.stats().reserved_bytes.current / mib);
    }
    return series;
  }
  [[nodiscard]] const caching_allocator& allocator() const { return allocator_; }

 private:
  [[nodiscard]] static caching_allocator_options options_of(std::string_view settings, std::int64_t capacity) {
    caching_allocator_options options = memprof::parse_cuda_alloc_conf(settings);
    options.capacity = capacity;
    return options;
  }

  caching_allocator allocator_;
};

}  // namespace

TEST_CASE("fragmentation: two options together reserve 138 MiB more in each cycle, as in PyTorch's issue 123548") {
  growing_program program{"max_split_size_mb:128,expandable_segments:True", 0};
  // Published with the issue. 64 + 101 x (91 + 45.5 + 2) MiB end in page 703 of 20 MiB.
  CHECK(program.reserved() == std::vector<std::int64_t>{220, 2980, 5760, 8520, 11300, 14060});
  CHECK(program.allocator().stats().allocated_bytes.current == 266 * mib);
  // Each cycle leaves 136.5 MiB behind, which is too large to be split: 101 times between blocks, and 7.5 MiB at the end.
  const fragmentation parts = fragmentation_of(program.allocator());
  CHECK(parts == fragmentation{.reserved = 14060 * mib,
                               .live = 266 * mib,
                               .hard = 101 * 273 * mib / 2,
                               .soft = 14060 * mib - 266 * mib - 101 * 273 * mib / 2});
}

TEST_CASE("fragmentation: issue 123548 when the device is full, at the cycle and with the bytes that were published") {
  // A device of 16 GiB, of which the allocator got 16,000 MiB and not 100 more.
  growing_program program{"max_split_size_mb:128,expandable_segments:True", 16'080 * mib};
  for (int index = 0; index < 115; ++index) program.cycle();
  CHECK(program.allocator().stats().num_alloc_retries == 0);
  CHECK(program.allocator().stats().reserved_bytes.current == 16'000 * mib);
  program.cycle();  // number 115, from 0
  CHECK(program.allocator().stats().num_alloc_retries == 1);
  CHECK(program.allocator().stats().num_ooms == 0);
  CHECK(program.allocator().stats().allocated_bytes.current == 296 * mib);
  CHECK(program.allocator().stats().reserved_bytes.current == 2'680 * mib);
  CHECK(program.allocator().stats().reserved_bytes.peak == 16'000 * mib);
}

TEST_CASE("fragmentation: each option of issue 123548 alone, and none, reserve less than 500 MiB") {
  for (const std::string_view settings : {"", "max_split_size_mb:128", "expandable_segments:True"}) {
    growing_program program{settings, 0};
    const std::vector<std::int64_t> series = program.reserved();
    INFO("settings '" << settings << "': " << series.back());
    CHECK(*std::max_element(series.begin(), series.end()) < 500);
  }
}

}  // namespace memprof_tests::analysis_fragmentation
