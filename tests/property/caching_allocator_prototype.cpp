// The model against another one: a throwaway that was found equal to PyTorch's own libc10_cuda, event by event. It lies beside
// the project where that is developed; CMake says whether it is there.
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <property/random_requests.hpp>
#include <property/sequence_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#if defined(MEMPROF_CACHING_ALLOCATOR_PROTOTYPE)

#include <cca_sim.hpp>

namespace {

using namespace memprof;
using namespace memprof::extend;
using namespace memprof::property;

/// The prototype leaves its blocks to the end of the program.
struct prototype : ccasim::Sim {
  using ccasim::Sim::Sim;
  prototype(const prototype&) = delete;
  prototype& operator=(const prototype&) = delete;
  ~prototype() {
    for (const auto& [id, block] : live) delete block;
    for (int pool = 0; pool < 2; ++pool) {
      for (const ccasim::Block* const block : free_[pool]) delete block;
      for (const ccasim::Block* const block : unmapped_[pool]) delete block;
    }
  }
};

[[nodiscard]] ccasim::Config config_of(const caching_allocator_options& options) {
  ccasim::Config config;
  if (options.max_split_size != caching_allocator_options::unlimited) {
    config.max_split = static_cast<std::size_t>(options.max_split_size);
  }
  config.max_non_split_rounding = static_cast<std::size_t>(options.max_non_split_rounding);
  config.expandable = options.expandable_segments;
  config.roundup_div = static_cast<std::size_t>(options.roundup_power2_divisions[0]);
  if (options.capacity != 0) config.capacity = static_cast<std::size_t>(options.capacity);
  return config;
}

/// Whether the two tell the same numbers. The prototype does not count pages that are unmapped as given back, and does not know
/// active and inactive split bytes.
[[nodiscard]] bool are_equal(const caching_allocator_stats& stats, const prototype& other, bool is_expandable) {
  const auto is = [](std::int64_t ours, std::uint64_t theirs) { return static_cast<std::uint64_t>(ours) == theirs; };
  return (is_expandable || is(stats.num_device_free, other.seg_frees)) && is(stats.requested_bytes.current, other.requested) &&
         is(stats.requested_bytes.peak, other.peak_requested) && is(stats.allocated_bytes.current, other.allocated) &&
         is(stats.allocated_bytes.peak, other.peak_allocated) && is(stats.reserved_bytes.current, other.reserved) &&
         is(stats.reserved_bytes.peak, other.peak_reserved) && is(stats.num_device_alloc, other.segs) &&
         is(stats.num_alloc_retries, other.retries) && is(stats.num_ooms, other.ooms);
}

/// The first request at which they differ; empty if there is none.
[[nodiscard]] std::string first_difference(const request_sequence& sequence) {
  caching_allocator ours{sequence.options};
  prototype theirs{config_of(sequence.options)};
  std::vector<const cached_block*> blocks(sequence.allocations);
  for (std::size_t index = 0; index < sequence.requests.size(); ++index) {
    const request& asked = sequence.requests[index];
    const std::string where = "request " + std::to_string(index) + ": ";
    if (asked.kind == request_kind::allocate) {
      blocks[asked.block] = ours.allocate(asked.bytes, asked.stream);
      const bool is_served = theirs.alloc(asked.block + 1, asked.bytes, asked.stream);
      if (is_served != (blocks[asked.block] != nullptr)) return where + "only one of them serves it";
    } else if (asked.kind == request_kind::deallocate && blocks[asked.block] != nullptr) {
      ours.deallocate(blocks[asked.block]);
      theirs.free(asked.block + 1);
    }
    if (!are_equal(ours.stats(), theirs, sequence.options.expandable_segments)) return where + "the numbers differ";
  }
  return {};
}

}  // namespace

TEST_CASE(
    "caching allocator property: after every request the numbers are those of the prototype that was compared with PyTorch") {
  // What the prototype does not have is left out, and the addresses of an expandable segment are as many as it takes for all
  // sizes.
  constexpr request_variety variety{
      .collects_garbage = false, .sizes_segments = false, .uses_pools = false, .empties_cache = false};
  std::printf("caching allocator, prototype: %llu sequences, MEMPROF_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(sequence_count()), static_cast<unsigned long long>(base_seed()));
  for (std::uint64_t index = 0; index < sequence_count(); ++index) {
    request_sequence sequence = random_requests(base_seed() + index, index % 41 == 40 ? 3000 : 60, variety);
    sequence.options.per_process_memory_fraction = 1;
    sequence.options.expandable_segment_range = std::int64_t{1} << 38;
    const std::string difference = first_difference(sequence);
    if (difference.empty()) continue;
    FAIL("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index << " with " << to_text(sequence.options) << "\n  "
                              << difference);
  }
  SUCCEED();
}

#else

TEST_CASE(
    "caching allocator property: after every request the numbers are those of the prototype that was compared with PyTorch") {
  SKIP("there is no ../shared/prototypes/cuda/cca_sim.hpp beside " MEMPROF_SOURCE_DIR);
}

#endif
