#pragma once

#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <property/random_sequence.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof::property {

using namespace extend;

enum class request_kind : std::uint8_t { allocate, deallocate, record_stream, synchronize, empty_cache };

/// What is asked of a caching allocator.
struct request {
  request_kind kind;
  std::uint64_t bytes = 0;   ///< to allocate
  std::uint64_t stream = 0;  ///< to allocate on, or that uses the block too
  std::size_t pool = 0;      ///< 0 or 1
  std::size_t block = 0;     ///< the number of the allocation, from 0; the others' is that of an earlier one
};

/// Options and requests that come to them.
struct request_sequence {
  caching_allocator_options options;
  std::vector<request> requests;
  std::size_t allocations = 0;
};

/// What a sequence may ask for beside allocations and frees on one stream.
struct request_variety {
  bool collects_garbage = true;
  bool uses_streams = true;
  bool sizes_segments = true;
  bool uses_pools = true;
  bool empties_cache = true;
};

/// Sizes around all limits of the allocator, many of them equal.
[[nodiscard]] inline std::uint64_t random_request_size(random_numbers& random) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  switch (random.below(8)) {
    case 0: return 1 + random.below(4096);
    case 1: return 512 * (1 + random.below(8));
    case 2: return 1 + random.below(2 * mib);
    case 3: return random.pick(std::array{mib - 1, mib, mib + 1, 2 * mib, 10 * mib - 512, 10 * mib, 10 * mib + 1, 20 * mib});
    case 4: return 1 + random.below(12 * mib);
    case 5: return mib * (1 + random.below(40));
    case 6: return 1 + random.below(90 * mib);
    default: return 3 * mib + 512 * random.below(3);
  }
}

[[nodiscard]] inline caching_allocator_options random_allocator_options(random_numbers& random, const request_variety& variety) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  caching_allocator_options options;
  if (random.chance(60)) options.capacity = mib * static_cast<std::int64_t>(40 + random.below(400));
  if (variety.sizes_segments && random.chance(20)) {
    options.large_segment_size = mib * static_cast<std::int64_t>(10 + random.below(60));
  }
  if (random.chance(30)) options.max_split_size = options.large_segment_size + mib * static_cast<std::int64_t>(random.below(60));
  if (random.chance(20)) options.max_non_split_rounding = mib * static_cast<std::int64_t>(20 + random.below(40));
  if (random.chance(30)) options.roundup_power2_divisions.fill(std::int64_t{1} << random.below(6));
  options.expandable_segments = random.chance(40);
  if (random.chance(20)) options.per_process_memory_fraction = 0.5 + 0.1 * static_cast<double>(random.below(5));
  if (variety.collects_garbage && random.chance(60)) {
    options.garbage_collection_threshold = 0.1 * static_cast<double>(1 + random.below(9));
  }
  return options;
}

/// Bursts of allocations and frees, as many of them as `steps`.
[[nodiscard]] inline request_sequence random_requests(std::uint64_t seed, std::size_t steps,
                                                      const request_variety& variety = {}) {
  random_numbers random{seed};
  request_sequence made;
  made.options = random_allocator_options(random, variety);
  const std::uint64_t streams = variety.uses_streams && random.chance(40) ? 3 : 1;
  const bool has_pool = variety.uses_pools && random.chance(20);
  std::vector<std::size_t> live;
  unsigned growth = 60;
  while (made.requests.size() < steps) {
    if (random.chance(4)) growth = random.chance(50) ? 75 : 25;
    request next{};
    if (live.empty() || random.chance(growth)) {
      next = {request_kind::allocate, random_request_size(random), random.below(streams), has_pool ? random.below(2) : 0,
              made.allocations++};
      live.push_back(next.block);
    } else if (variety.empties_cache && random.chance(2)) {
      next.kind = random.chance(50) ? request_kind::empty_cache : request_kind::synchronize;
    } else {
      // The newest or any.
      const std::size_t index = random.chance(50) ? live.size() - 1 : random.below(live.size());
      next.block = live[index];
      next.kind = request_kind::deallocate;
      if (streams > 1 && random.chance(20)) {
        next.kind = request_kind::record_stream;
        next.stream = random.below(streams);
      } else {
        live[index] = live.back();
        live.pop_back();
      }
    }
    made.requests.push_back(next);
  }
  return made;
}

/// The options, as a failing test shows them.
[[nodiscard]] inline std::string to_text(const caching_allocator_options& options) {
  return "capacity " + std::to_string(options.capacity) + ", max_split_size " + std::to_string(options.max_split_size) +
         ", max_non_split_rounding " + std::to_string(options.max_non_split_rounding) + ", large_segment_size " +
         std::to_string(options.large_segment_size) + ", roundup_power2_divisions " +
         std::to_string(options.roundup_power2_divisions[0]) + ", expandable_segments " +
         std::to_string(static_cast<int>(options.expandable_segments)) + ", per_process_memory_fraction " +
         std::to_string(options.per_process_memory_fraction) + ", garbage_collection_threshold " +
         std::to_string(options.garbage_collection_threshold);
}

}  // namespace memprof::property
