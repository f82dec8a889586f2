#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <property/random_sequence.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace memprof_tests::analysis_memory_fit {

using memprof::allocation_sequence;
using memprof::caching_allocator_options;
using memprof::failed_allocation;
using memprof::fit_memory;
using memprof::fragmentation;
using memprof::fragmentation_at_peak;
using memprof::memory_fit;
using memprof::smallest_capacity;
using memprof::unused_in_private_pools;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::extend::label;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A program that allocates and frees blocks by number.
class program {
 public:
  program& allocate(std::uint64_t block, std::int64_t bytes) {
    return add({0, 0x1000 + block, static_cast<std::uint64_t>(bytes), 0, event_kind::allocate, 0, 0});
  }
  program& deallocate(std::uint64_t block) { return add({0, 0x1000 + block, 0, 0, event_kind::deallocate, 0, 0}); }
  program& allocate_on(label stream, std::uint64_t block, std::int64_t bytes) {
    return add({0, 0x1000 + block, static_cast<std::uint64_t>(bytes), stream, event_kind::allocate_on_stream, 0, 0});
  }
  program& request(std::uint64_t block) { return add({0, 0x1000 + block, 0, 0, event_kind::deallocate_on_stream, 0, 1}); }
  program& complete(std::uint64_t block) { return add({0, 0x1000 + block, 0, 0, event_kind::complete_deallocation, 0, 0}); }
  /// What the program has the stream and pool give back.
  program& give_back(label stream) { return add({0, 0x9000, 1 << 20, stream, event_kind::release, 0, 1}); }
  label name(std::string_view text) {
    const auto id = static_cast<label>(sequence_.names().size() + 1);
    sequence_.name(id, text);
    return id;
  }
  program& begin(std::string_view name) {
    const auto id = static_cast<memprof::extend::label>(sequence_.names().size() + 1);
    sequence_.name(id, name);
    ++depth_;
    open_.push_back(id);
    return add({0, memprof::detail::scope_address(depth_, depth_ - 1), 0, id, event_kind::scope_begin, 0, 0});
  }
  program& end() {
    const memprof::extend::label id = open_.back();
    open_.pop_back();
    return add({0, depth_--, 0, id, event_kind::scope_end, 0, 0});
  }

  [[nodiscard]] const allocation_sequence& sequence() const { return sequence_; }

 private:
  program& add(const event& next) {
    sequence_.events(&next, &next + 1, 1);
    return *this;
  }

  allocation_sequence sequence_{0};
  std::uint32_t depth_ = 0;
  std::vector<memprof::extend::label> open_;
};

}  // namespace

TEST_CASE("memory fit: without a limit the peaks are those of the model") {
  program steps;
  steps.allocate(1, 3 * mib + 100).allocate(2, 19 * mib).deallocate(1).allocate(3, 100);
  const memory_fit fit = fit_memory(steps.sequence(), {});
  CHECK(fit.fits());
  CHECK(fit.stats.requested_bytes.peak == 22 * mib + 100);
  CHECK(fit.stats.allocated_bytes.peak == 23 * mib + 512);  // 20 MiB for the 19
  CHECK(fit.stats.reserved_bytes.peak == (20 + 20 + 2) * mib);
  CHECK(fit.unlimited_stats == fit.stats);
}

TEST_CASE("memory fit: the first request that fails is reported with what was there and the operation that asked") {
  program steps;
  steps.allocate(1, 4 * mib).allocate(2, 30 * mib).deallocate(2);
  steps.begin("forward").begin("scores").allocate(3, 60 * mib).end();
  steps.allocate(4, 25 * mib).end();
  // 20 MiB are reserved for the 4. For 60 the cached 30 go, and 25 find 80 of 100 MiB reserved.
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = 100 * mib});
  REQUIRE_FALSE(fit.fits());
  const failed_allocation& failure = *fit.first_failure;
  CHECK(failure.event == 7);
  CHECK(memprof::operation_path(steps.sequence(), failure.operation) == "forward");
  CHECK(failure.requested == 25 * mib);
  CHECK(failure.allowed == 100 * mib);
  CHECK(failure.reserved == 80 * mib);
  CHECK(failure.allocated == 64 * mib);
  CHECK(failure.free() == 20 * mib);
  CHECK(failure.fragmented() == 16 * mib);
  CHECK(failure.largest_cached == 16 * mib);
  CHECK(fit.stats.num_alloc_retries == 2);
  CHECK(fit.stats.reserved_bytes.peak == 80 * mib);
  CHECK(fit.unlimited_stats.reserved_bytes.peak == (20 + 30 + 60) * mib);  // the 25 take the 30
  CHECK(fit.unlimited_stats.requested_bytes.peak == 89 * mib);
}

TEST_CASE("memory fit: what others hold of the device is not there for the allocator") {
  program steps;
  steps.allocate(1, 30 * mib);
  CHECK(fit_memory(steps.sequence(), {.capacity = 37 * mib, .context = 7 * mib}).fits());
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = 37 * mib, .context = 8 * mib});
  REQUIRE_FALSE(fit.fits());
  CHECK(fit.first_failure->allowed == 29 * mib);
  CHECK(fit.first_failure->free() == 29 * mib);
  CHECK(fit.unlimited_stats.reserved_bytes.peak == 30 * mib);
  CHECK(smallest_capacity(steps.sequence(), {.context = 8 * mib}) == 38 * mib);
  CHECK_THROWS(fit_memory(steps.sequence(), {.capacity = 7 * mib, .context = 8 * mib}));
}

TEST_CASE("memory fit: nothing is free, and not less, where an expandable segment took more than is allowed") {
  program steps;
  steps.allocate(1, 41 * mib).allocate(2, 30 * mib);  // 41 of 50 are allowed, and three pages of 20 taken
  const memory_fit fit =
      fit_memory(steps.sequence(), {.capacity = 100 * mib, .per_process_memory_fraction = 0.5, .expandable_segments = true});
  REQUIRE_FALSE(fit.fits());
  CHECK(fit.first_failure->allowed == 50 * mib);
  CHECK(fit.first_failure->reserved == 60 * mib);
  CHECK(fit.first_failure->free() == 0);
}

TEST_CASE("memory fit: what would be needed without a limit does not depend on the limit") {
  memprof::property::random_numbers random{20261121};
  for (int count = 0; count < 2000; ++count) {
    program steps;
    std::vector<std::uint64_t> live;
    for (std::uint64_t block = 0; block < 60; ++block) {
      steps.allocate(block, static_cast<std::int64_t>(1 + random.below(40 * mib)));
      live.push_back(block);
      while (!live.empty() && random.chance(45)) {
        const std::size_t index = random.below(live.size());
        steps.deallocate(live[index]);
        live[index] = live.back();
        live.pop_back();
      }
    }
    caching_allocator_options options{.expandable_segments = true};
    const memory_fit unlimited = fit_memory(steps.sequence(), options);
    options.capacity = unlimited.stats.reserved_bytes.peak;
    REQUIRE(fit_memory(steps.sequence(), options).unlimited_stats == unlimited.stats);
  }
}

TEST_CASE("memory fit: an operation has the path it has in a profile") {
  program steps;
  steps.begin("forward").begin("scores").allocate(1, 4 * mib);
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = mib});
  CHECK(memprof::operation_path(steps.sequence(), fit.first_failure->operation) == "forward/scores");
  CHECK(memprof::operation_path(steps.sequence(), 0).empty());
}

TEST_CASE("memory fit: the largest cached block is one that the request could have been given") {
  program steps;
  steps.allocate(1, 2 * mib).allocate(2, mib).allocate(3, 800'000);
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = 22 * mib});
  CHECK(fit.fits());
  steps.allocate(4, mib);  // 18 MiB are cached, but not for small requests
  CHECK(fit_memory(steps.sequence(), {.capacity = 22 * mib}).first_failure->largest_cached == mib - 800'256);
}

TEST_CASE("memory fit: the smallest capacity is what is reserved if nothing can be given back") {
  program steps;
  steps.allocate(1, 30 * mib).allocate(2, 50 * mib).allocate(3, 3 * mib);
  CHECK(smallest_capacity(steps.sequence(), {}) == 100 * mib);
  CHECK(smallest_capacity(steps.sequence(), {.capacity = 5}) == 100 * mib);
  CHECK(smallest_capacity(steps.sequence(), {.per_process_memory_fraction = 0.5}) == 200 * mib);
  CHECK(smallest_capacity(steps.sequence(), {.expandable_segments = true}) == 100 * mib);
}

TEST_CASE("memory fit: the smallest capacity counts on cached blocks being given back") {
  program steps;
  steps.allocate(1, 30 * mib).deallocate(1).allocate(2, 40 * mib).deallocate(2).allocate(3, 50 * mib);
  CHECK(fit_memory(steps.sequence(), {}).stats.reserved_bytes.peak == 120 * mib);
  CHECK(smallest_capacity(steps.sequence(), {}) == 50 * mib);
}

TEST_CASE("memory fit: nothing needs nothing, and for what no device can hold there is no capacity") {
  program nothing;
  CHECK(smallest_capacity(nothing.sequence(), {}) == 0);
  CHECK(fit_memory(nothing.sequence(), {.capacity = 1}).fits());

  program small;
  CHECK(smallest_capacity(small.allocate(1, 1).sequence(), {}) == 2 * mib);

  program endless;
  for (std::uint64_t block = 0; block < 5; ++block) endless.allocate(block, std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(smallest_capacity(endless.sequence(), {}).has_value());
  CHECK(fit_memory(endless.sequence(), {}).first_failure->requested == std::int64_t{1} << 60);
  CHECK_FALSE(smallest_capacity(endless.sequence(), {.expandable_segments = true}).has_value());
}

TEST_CASE("memory fit: random programs fit into their smallest capacity and not into 2 MiB less") {
  memprof::property::random_numbers random{20260801};
  for (int count = 0; count < 100; ++count) {
    program steps;
    std::vector<std::uint64_t> live;
    for (std::uint64_t block = 0; block < 60; ++block) {
      steps.allocate(block, static_cast<std::int64_t>(1 + random.below(1 + random.below(40)) * random.below(1 << 20)));
      live.push_back(block);
      while (live.size() > 1 && random.chance(45)) {
        const std::size_t index = random.below(live.size());
        steps.deallocate(live[index]);
        live[index] = live.back();
        live.pop_back();
      }
    }
    caching_allocator_options options{.expandable_segments = random.chance(50)};
    const auto capacity = smallest_capacity(steps.sequence(), options);
    REQUIRE(capacity);
    options.capacity = *capacity;
    CHECK(fit_memory(steps.sequence(), options).fits());
    options.capacity -= 2 * mib;
    CHECK((options.capacity == 0 || !fit_memory(steps.sequence(), options).fits()));
  }
}

TEST_CASE("memory fit: blocks of two streams share no segment, nor do those of two pools") {
  program steps;
  const label first = steps.name("default\x1f");
  const label second = steps.name("0x55\x1f");
  const label graph = steps.name(
      "default\x1f"
      "0:1");
  steps.allocate_on(first, 1, 30 * mib).deallocate(1).allocate_on(second, 2, 30 * mib).deallocate(2);
  steps.allocate_on(graph, 3, 30 * mib).deallocate(3).allocate_on(first, 4, 30 * mib).allocate_on(first, 5, 30 * mib);
  CHECK(fit_memory(steps.sequence(), {}).stats.reserved_bytes.peak == 120 * mib);
  CHECK(fragmentation_at_peak(steps.sequence(), {}) ==
        fragmentation{.reserved = 120 * mib, .live = 60 * mib, .stream = 60 * mib});
  // Of 100 MiB, what is cached is given back, except in the pool of a graph.
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = 100 * mib});
  CHECK(fit.fits());
  CHECK(fit.stats.reserved_bytes.current == 90 * mib);
}

TEST_CASE("memory fit: a freed block serves nobody until its streams are done") {
  program early;
  early.allocate(1, 30 * mib).request(1).complete(1).allocate(2, 30 * mib);
  CHECK(fit_memory(early.sequence(), {}).stats.reserved_bytes.peak == 30 * mib);
  program late;
  late.allocate(1, 30 * mib).request(1).allocate(2, 30 * mib).complete(1).allocate(3, 30 * mib);
  CHECK(fit_memory(late.sequence(), {}).stats.reserved_bytes.peak == 60 * mib);
  CHECK(fragmentation_at_peak(late.sequence(), {}) == fragmentation{.reserved = 60 * mib, .live = 30 * mib, .pending = 30 * mib});
  // A full device waits for the streams; that the trace says so later changes nothing.
  const memory_fit fit = fit_memory(late.sequence(), {.capacity = 40 * mib});
  CHECK_FALSE(fit.fits());
  CHECK(fit.first_failure->event == 4);
  CHECK(fit.stats.num_alloc_retries == 2);
}

TEST_CASE("memory fit: a failure has the causes, as the stream of the request sees them") {
  program steps;
  const label first = steps.name("default\x1f");
  const label second = steps.name("0x55\x1f");
  steps.allocate_on(first, 1, 60 * mib).deallocate(1).allocate_on(first, 2, 20 * mib).allocate_on(first, 3, 20 * mib);
  steps.deallocate(2).allocate_on(second, 4, 30 * mib).allocate_on(second, 5, 40 * mib);
  const memory_fit fit = fit_memory(steps.sequence(), {.capacity = 100 * mib});
  REQUIRE(fit.first_failure);
  CHECK(fit.first_failure->parts == fragmentation{.reserved = 90 * mib, .live = 50 * mib, .stream = 40 * mib});
}

TEST_CASE("memory fit: what a program had the allocator give back is not reserved twice") {
  program run;
  run.allocate(1, 40 * mib).deallocate(1).give_back(0).allocate(2, 60 * mib);
  CHECK(fit_memory(run.sequence(), {}).stats.reserved_bytes.peak == 60 * mib);
  program kept;
  kept.allocate(1, 40 * mib).deallocate(1).allocate(2, 60 * mib);
  CHECK(fit_memory(kept.sequence(), {}).stats.reserved_bytes.peak == 100 * mib);
}

TEST_CASE("memory fit: what private pools hold free is told, until the program gives it back") {
  program run;
  const label pool = run.name(
      "0x1\x1f"
      "1:0");
  run.allocate(1, 12 * mib).deallocate(1);
  run.allocate_on(pool, 1, 40 * mib).deallocate(1).allocate_on(pool, 2, 12 * mib).allocate(3, 20 * mib);
  CHECK(fit_memory(run.sequence(), {}).stats.reserved_bytes.peak == 72 * mib);
  CHECK(unused_in_private_pools(run.sequence(), {}) == 28 * mib);
  run.deallocate(2).give_back(pool).allocate(4, 70 * mib);
  CHECK(fit_memory(run.sequence(), {}).stats.reserved_bytes.peak == 102 * mib);
  CHECK(unused_in_private_pools(run.sequence(), {}) == 0);
  program without;
  without.allocate(1, 40 * mib);
  CHECK(unused_in_private_pools(without.sequence(), {}) == 0);
}

}  // namespace memprof_tests::analysis_memory_fit
