#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>
#include <memprof/toolkit/analysis/simulated_caching_allocator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_simulated_caching_allocator {

using memprof::caching_allocator_options;
using memprof::simulated_caching_allocator;
using place = memprof::simulated_caching_allocator::place;

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

TEST_CASE("simulated caching allocator: streams share no segment, and each thread has its own") {
  simulated_caching_allocator device;
  std::array<int, 3> kept{};
  device.allocate(&kept[0], 12 * mib);
  CHECK(device.deallocate(&kept[0]) == place{});
  device.use_stream(2);
  CHECK(device.stream() == 2);
  CHECK(device.allocate(&kept[0], 12 * mib) == place{2});
  CHECK(device.stats().all.reserved_bytes.current == 24 * mib);
  std::thread{[&] { CHECK(device.allocate(&kept[1], 12 * mib) == place{}); }}.join();
  CHECK(device.stats().all.reserved_bytes.current == 24 * mib);
  device.restart({});
  CHECK(device.stream() == 0);
}

TEST_CASE("simulated caching allocator: a captured stream's blocks are its pool's, until that has no user") {
  simulated_caching_allocator device;
  const simulated_caching_allocator::pool_handle pool{0, 1};
  std::array<int, 4> kept{};
  device.use_stream(3);
  device.allocate(&kept[0], 12 * mib);
  device.deallocate(&kept[0]);  // cached, and of no use in the pool
  const std::uint64_t capture = device.change_places([&](auto& places, auto& model) {
    CHECK(places.retain(model, pool));
    return places.begin_capture(pool, 3);
  });
  CHECK(device.allocate(&kept[0], 12 * mib) == place{3, 1, {0, 1}});
  CHECK(device.stats().all.reserved_bytes.current == 24 * mib);
  device.empty_cache();  // gives nothing back in a capture
  CHECK(device.stats().all.reserved_bytes.current == 24 * mib);
  device.use_stream(4);
  device.allocate(&kept[1], 30 * mib);  // of another stream: the shared pool
  device.change_places([&](auto& places, auto&) { places.join(4, capture, places.mark(3)); });
  device.allocate(&kept[2], 30 * mib);  // which is captured, too, now
  CHECK(device.stats().all.reserved_bytes.current == 84 * mib);
  std::map<std::uint64_t, std::int64_t> segments;
  device.for_each_segment([&](const auto& block, auto handle) { segments[handle.second] += block.bytes; });
  CHECK(segments == std::map<std::uint64_t, std::int64_t>{{0, 42 * mib}, {1, 42 * mib}});

  CHECK(device.change_places([&](auto& places, auto&) { return places.end_use(pool); }));
  device.deallocate(&kept[0]);
  device.empty_cache();  // the shared 12 MiB of stream 3
  CHECK(device.stats().all.reserved_bytes.current == 72 * mib);
  CHECK(device.change_places([&](auto& places, auto& model) { return places.release(model, pool); }) == 0);
  CHECK(!device.change_places([&](auto& places, auto& model) { return places.retain(model, pool); }));  // it is not gone yet
  device.empty_cache();
  CHECK(device.stats().all.reserved_bytes.current == 60 * mib);
  device.deallocate(&kept[2]);
  device.empty_cache();
  CHECK(device.stats().all.reserved_bytes.current == 30 * mib);
  CHECK(device.change_places([&](auto& places, auto& model) { return places.retain(model, pool); }));
}

TEST_CASE("simulated caching allocator: what waits for a captured stream ends the capture, and the pool is not used any more") {
  simulated_caching_allocator device;
  std::array<int, 2> kept{};
  CHECK(device.try_to_wait());
  device.use_stream(3);
  device.change_places([&](auto& places, auto& model) {
    CHECK(places.retain(model, {1, 0}));
    CHECK(places.begin_capture({1, 0}, 3) == 1);
  });
  std::thread{[&] { CHECK(device.try_to_wait()); }}.join();
  CHECK(!device.try_to_wait());
  CHECK(device.try_to_wait());
  CHECK(device.change_places([](auto& places, auto&) { return places.has_failed(1) && places.is_any_used(); }));
  CHECK(device.allocate(&kept[0], mib) == place{3});
}

TEST_CASE("simulated caching allocator: a capture is joined once its stream has waited for all work of the others") {
  simulated_caching_allocator device;
  const auto is_joined = [&] { return device.change_places([](auto& places, auto&) { return places.is_joined(1); }); };
  const auto wait = [&](std::uint64_t stream, std::uint64_t other) {
    device.change_places([&](auto& places, auto&) { places.join(stream, 1, places.mark(other)); });
  };
  const auto work = [&](std::uint64_t stream) {
    device.use_stream(stream);
    device.add_work();
  };
  device.change_places([&](auto& places, auto& model) {
    CHECK(places.retain(model, {1, 0}));
    CHECK(places.begin_capture({1, 0}, 3) == 1);
  });
  work(3);
  work(5);  // not captured
  wait(4, 3);
  CHECK(is_joined());  // it has done nothing yet
  work(4);
  CHECK(!is_joined());
  wait(6, 4);
  work(6);
  wait(3, 4);
  CHECK(!is_joined());
  wait(3, 6);
  CHECK(is_joined());
  work(4);
  CHECK(!is_joined());
  wait(6, 4);
  wait(3, 6);  // through another
  CHECK(is_joined());
}

TEST_CASE("simulated caching allocator: a fraction of the device may be changed") {
  simulated_caching_allocator device{device_of(100 * mib)};
  CHECK(device.memory_fraction() == 1);
  CHECK(refusal_of(device, 60 * mib).empty());
  device.empty_cache();
  device.set_memory_fraction(0.5);
  CHECK(refusal_of(device, 60 * mib) ==
        refusal("60.00 MiB", "100.00 MiB", "100.00 MiB", "0 bytes", "50.00 MiB allowed; ", "0 bytes", "0 bytes"));
  CHECK(refusal_of(device, 50 * mib).empty());
  device.empty_cache();
  device.set_memory_fraction(0);
  CHECK(!refusal_of(device, 1).empty());
  device.set_memory_fraction(1);
  CHECK(refusal_of(device, 100 * mib).empty());
}

TEST_CASE("simulated caching allocator: while a pool is used, a full device gets nothing back from the shared one") {
  simulated_caching_allocator device{device_of(64 * mib)};
  int kept = 0;
  device.allocate(&kept, 40 * mib);
  device.deallocate(&kept);
  const simulated_caching_allocator::pool_handle pool{0, 1};
  device.change_places([&](auto& places, auto& model) {
    CHECK(places.retain(model, pool));
    places.begin_use(pool);
  });
  CHECK(!refusal_of(device, 30 * mib).empty());
  std::thread{[&] { CHECK(!refusal_of(device, 50 * mib).empty()); }}.join();
  int outside = 0;
  CHECK(device.allocate(&outside, 20 * mib, true) == place{});  // of a backward pass: what is cached there
  CHECK(device.deallocate(&outside) == place{});
  CHECK(device.allocate(&outside, 20 * mib) == place{0, 1, pool});
  device.deallocate(&outside);
  device.change_places([&](auto& places, auto&) { CHECK(places.end_use(pool)); });
  CHECK(refusal_of(device, 44 * mib).empty());  // all but the pool's
}

TEST_CASE("simulated caching allocator: the observer hears for which stream and pool, and what the program gave back") {
  using memprof::segment_action;
  simulated_caching_allocator device{device_of(64 * mib)};
  std::vector<std::tuple<segment_action, std::int64_t, place, bool>> heard;
  device.observe([&](segment_action action, std::uint64_t, std::int64_t bytes, const place& where, bool was_asked) {
    heard.emplace_back(action, bytes, where, was_asked);
  });
  int kept = 0;
  device.use_stream(5);
  device.allocate(&kept, 40 * mib);
  device.deallocate(&kept);
  device.use_stream(0);
  device.allocate(&kept, 50 * mib);  // the device is full
  device.deallocate(&kept);
  device.empty_cache();
  const place side{5};
  CHECK(heard == decltype(heard){{segment_action::reserve, 40 * mib, side, false},
                                 {segment_action::release, 40 * mib, side, false},
                                 {segment_action::reserve, 50 * mib, {}, false},
                                 {segment_action::release, 50 * mib, {}, true}});
}

TEST_CASE("simulated caching allocator: a pool that is kept whole divides no segment") {
  simulated_caching_allocator device;
  device.change_places([&](auto& places, auto& model) {
    CHECK(places.retain(model, {0, 1}, true));
    places.begin_use({0, 1});
  });
  std::array<int, 2> kept{};
  device.allocate(&kept[0], 600);
  device.allocate(&kept[1], 600);
  CHECK(device.stats().all.reserved_bytes.current == 4 * mib);
}

}  // namespace memprof_tests::analysis_simulated_caching_allocator
