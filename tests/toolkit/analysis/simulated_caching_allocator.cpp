#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/simulated_caching_allocator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace memprof_tests::analysis_simulated_caching_allocator {

using memprof::caching_allocator_options;
using memprof::simulated_caching_allocator;

namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t gib = 1 << 30;

/// What a device says that has no room for `bytes`; empty if it has.
std::string refusal_of(simulated_caching_allocator& device, std::int64_t bytes) {
  std::array<char, 1024> message{};
  std::int64_t free_bytes = 0;
  return device.has_room(bytes, message.data(), message.size(), free_bytes) ? "" : message.data();
}

caching_allocator_options device_of(std::int64_t capacity, std::int64_t context = 0) {
  caching_allocator_options options;
  options.capacity = capacity;
  options.context = context;
  return options;
}

/// The text of c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.13, around its numbers.
std::string refusal(const std::string& tried, const std::string& capacity, const std::string& free, const std::string& in_use,
                    const std::string& allowed, const std::string& allocated, const std::string& unallocated) {
  return "CUDA out of memory. Tried to allocate " + tried + ". GPU 0 has a total capacity of " + capacity + " of which " + free +
         " is free. Including non-PyTorch memory, this process has " + in_use + " memory in use. " + allowed +
         "Of the allocated memory " + allocated + " is allocated by PyTorch, and " + unallocated +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
         "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
}

}  // namespace

TEST_CASE("simulated caching allocator: a full device says so in PyTorch's words, with what it would have reserved") {
  simulated_caching_allocator device{device_of(64 * mib)};
  int kept = 0;
  device.allocate(&kept, 5 * mib);
  // A segment of 20 MiB for what is below 10, and of whole pairs of MiB for the rest.
  CHECK(refusal_of(device, 45 * mib) == refusal("46.00 MiB", "64.00 MiB", "44.00 MiB", "20.00 MiB", "", "5.00 MiB", "15.00 MiB"));
  simulated_caching_allocator small{device_of(3 * mib)};
  CHECK(refusal_of(small, mib + 1) == refusal("20.00 MiB", "3.00 MiB", "3.00 MiB", "0 bytes", "", "0 bytes", "0 bytes"));
  simulated_caching_allocator least{device_of(mib)};
  CHECK(refusal_of(least, 1) == refusal("2.00 MiB", "1024.00 KiB", "1024.00 KiB", "0 bytes", "", "0 bytes", "0 bytes"));
}

TEST_CASE("simulated caching allocator: sizes in the message are those of PyTorch's format_size") {
  // 1,024 of a unit are not yet one of the next.
  for (const auto& [bytes, text] :
       {std::pair{std::int64_t{1}, "1 bytes"}, std::pair{kib, "1024 bytes"}, std::pair{kib + 1, "1.00 KiB"},
        std::pair{kib + 512, "1.50 KiB"}, std::pair{mib, "1024.00 KiB"}, std::pair{mib + mib / 4, "1.25 MiB"},
        std::pair{gib, "1024.00 MiB"}, std::pair{gib + gib / 100, "1.01 GiB"}, std::pair{2048 * gib, "2048.00 GiB"}}) {
    simulated_caching_allocator device{device_of(bytes)};
    CHECK(refusal_of(device, 4096 * gib) == refusal("4096.00 GiB", text, text, "0 bytes", "", "0 bytes", "0 bytes"));
  }
}

TEST_CASE("simulated caching allocator: a context is in use and not free, and a fraction is named") {
  simulated_caching_allocator device{device_of(64 * mib, 10 * mib)};
  int kept = 0;
  device.allocate(&kept, 30 * mib);
  CHECK(refusal_of(device, 25 * mib) == refusal("26.00 MiB", "64.00 MiB", "24.00 MiB", "40.00 MiB", "", "30.00 MiB", "0 bytes"));
  caching_allocator_options half = device_of(64 * mib);
  half.per_process_memory_fraction = 0.5;
  simulated_caching_allocator limited{half};
  CHECK(refusal_of(limited, 40 * mib) ==
        refusal("40.00 MiB", "64.00 MiB", "64.00 MiB", "0 bytes", "32.00 MiB allowed; ", "0 bytes", "0 bytes"));
  CHECK(refusal_of(limited, 30 * mib).empty());
}

}  // namespace memprof_tests::analysis_simulated_caching_allocator
