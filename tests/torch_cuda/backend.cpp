// The backend for CUDA as programs include it, in front of an allocator that this file stands in for libtorch's: what it makes of
// what the allocator tells, and what a capture does where there is no trace. Needs the headers of CUDA, and no libtorch with
// CUDA.
#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_cuda.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/missing_source.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace cuda_allocator = c10::cuda::CUDACachingAllocator;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using cuda_allocator::TraceEntry;

constexpr std::size_t mib = std::size_t{1} << 20;

[[noreturn]] void not_needed() { throw std::logic_error{"the stand-in for the CUDA allocator does not do that"}; }

/// libtorch's interface of the allocator without a device behind it: it keeps listeners, and tells them what a test says.
class stand_in_allocator final : public cuda_allocator::CUDAAllocator {
 public:
  // What a test sets.
  bool is_initialized = true;
  bool refuses_listeners = false;
  cuda_allocator::SnapshotInfo to_tell;

  std::vector<cuda_allocator::AllocatorTraceTracker> listeners;

  void tell(TraceEntry::Action action, std::size_t address, std::size_t bytes) {
    const TraceEntry entry{action, 0, address, bytes, nullptr, {0, 0}, c10::getApproximateTime()};
    for (const auto& listener : listeners) listener(entry);
  }

  bool initialized() override { return is_initialized; }
  std::string name() override { return "stand-in"; }
  cuda_allocator::SnapshotInfo snapshot(c10::cuda::MempoolId_t, bool) override { return to_tell; }
  void attachAllocatorTraceTracker(cuda_allocator::AllocatorTraceTracker listener) override {
    TORCH_CHECK(!refuses_listeners, "stand-in does not yet support attachAllocatorTraceTracker");
    listeners.push_back(std::move(listener));
  }

  // The rest is there because the interface demands it.
  c10::DataPtr allocate(std::size_t) override { not_needed(); }
  void copy_data(void*, const void*, std::size_t) const override { not_needed(); }
  void* raw_alloc(std::size_t) override { not_needed(); }
  void* raw_alloc_with_stream(std::size_t, cudaStream_t) override { not_needed(); }
  void raw_delete(void*) override { not_needed(); }
  void init(int) override { not_needed(); }
  double getMemoryFraction(c10::DeviceIndex) override { not_needed(); }
  void setMemoryFraction(double, c10::DeviceIndex) override { not_needed(); }
  std::vector<cuda_allocator::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex) override { not_needed(); }
  void enable(bool) override { not_needed(); }
  bool isEnabled() const override { not_needed(); }
  void emptyCache(c10::MempoolId_t) override { not_needed(); }
  void cacheInfo(c10::DeviceIndex, std::size_t*) override { not_needed(); }
  void* getBaseAllocation(void*, std::size_t*) override { not_needed(); }
  void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) override { not_needed(); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { not_needed(); }
  void resetAccumulatedStats(c10::DeviceIndex) override { not_needed(); }
  void resetPeakStats(c10::DeviceIndex) override { not_needed(); }
  void beginAllocateToPool(c10::DeviceIndex, c10::MempoolId_t, std::function<bool(cudaStream_t)>) override { not_needed(); }
  void endAllocateToPool(c10::DeviceIndex, c10::MempoolId_t) override { not_needed(); }
  void releasePool(c10::DeviceIndex, c10::MempoolId_t) override { not_needed(); }
  cuda_allocator::ShareableHandle shareIpcHandle(void*) override { not_needed(); }
  std::shared_ptr<void> getIpcDevPtr(std::string) override { not_needed(); }
  void recordHistory(bool, cuda_allocator::CreateContextFn, std::size_t, cuda_allocator::RecordContext, bool,
                     const std::vector<std::string>&) override {
    not_needed();
  }
  void attachOutOfMemoryObserver(cuda_allocator::OutOfMemoryObserver) override { not_needed(); }
  void attachOomRejectionObserver(cuda_allocator::OomRejectionObserver) override { not_needed(); }
  void enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) override { not_needed(); }
  cudaError_t memcpyAsync(void*, int, const void*, int, std::size_t, cudaStream_t, bool) override { not_needed(); }
  std::shared_ptr<cuda_allocator::AllocatorState> getCheckpointState(c10::DeviceIndex, c10::MempoolId_t) override {
    not_needed();
  }
  cuda_allocator::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex,
                                                         std::shared_ptr<cuda_allocator::AllocatorState>) override {
    not_needed();
  }
};

c10::DeviceIndex devices = 1;

/// Puts an allocator in the place of libtorch's until the end of the scope. It lives on, as the listener of the process may
/// remember it.
class stand_in_guard {
 public:
  stand_in_guard() { cuda_allocator::allocator.store(&self); }
  stand_in_guard(const stand_in_guard&) = delete;
  stand_in_guard& operator=(const stand_in_guard&) = delete;
  ~stand_in_guard() {
    cuda_allocator::allocator.store(nullptr);
    devices = 1;
  }
  stand_in_allocator& self = *new stand_in_allocator;
};

/// A step that must be done whether CUDA is captured or not.
double train() {
  const at::Tensor weight = torch::ones({8, 8}, torch::requires_grad());
  at::mm(weight, weight).sum().backward();
  return weight.grad().sum().item<double>();
}

/// What a capture says that cannot see CUDA. The CPU and the program go on.
memprof::vector<memprof::missing_source> missing_of(const memprof::profile& profile) {
  return memprof::rows_of<memprof::missing_source>(profile.facts);
}

memprof::vector<memprof::missing_source> not_captured() {
  auto capture = memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>();
  CHECK(train() == 8 * 8 * 16.0);  // each element of the gradient of sum(W W) is a row's sum and a column's
  capture.end();
  const memprof::profile& profile = capture.profile();
  CHECK(profile.space("cpu").cumulative_peak >= 3 * 8 * 8 * 4);
  CHECK(profile.exact);
  CHECK(profile.find_space("cuda:0") == nullptr);
  CHECK_THAT(memprof::to_text(profile), ContainsSubstring("CUDA not captured:"));
  return missing_of(profile);
}

}  // namespace

// What libc10_cuda and the runtime of CUDA would define.
extern "C" cudaError_t cudaMemGetInfo(std::size_t*, std::size_t*) { return cudaErrorNotSupported; }

namespace c10::cuda {

DeviceIndex device_count() noexcept { return devices; }
void c10_cuda_check_implementation(std::int32_t, const char*, const char*, std::uint32_t, bool) { not_needed(); }

namespace CUDACachingAllocator {

std::atomic<CUDAAllocator*> allocator;

}  // namespace CUDACachingAllocator
}  // namespace c10::cuda

TEST_CASE("torch cuda: the allocator's trace becomes the space of the device, and what was reserved before counts") {
  const stand_in_guard stand_in;
  stand_in_allocator& allocator = stand_in.self;
  cuda_allocator::SegmentInfo segment;
  segment.address = 0x10000000;
  segment.total_size = 2 * mib;
  allocator.to_tell.segments = {segment};
  auto capture = memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>();
  REQUIRE(allocator.listeners.size() == 1);
  allocator.tell(TraceEntry::ALLOC, 0x10000000, 5000);
  allocator.tell(TraceEntry::ALLOC, 0x10002000, 300);
  allocator.tell(TraceEntry::FREE_REQUESTED, 0x10000000, 5000);
  allocator.tell(TraceEntry::FREE_COMPLETED, 0x10000000, 5000);
  allocator.tell(TraceEntry::OOM, mib, 70 * mib);
  capture.end();
  allocator.tell(TraceEntry::FREE_REQUESTED, 0x10002000, 300);  // after the capture
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  CHECK(space.cumulative_peak == 5300);
  CHECK(space.cumulative_current == 300);
  CHECK(space.reserved.peak == 2 * mib);
  REQUIRE(space.streams.size() == 1);
  CHECK(space.streams[0] == memprof::stream_usage{"default", "", 5300, 300, 2, 2 * mib, 2 * mib});
  REQUIRE(space.out_of_memory.size() == 1);
  CHECK(space.out_of_memory[0].requested == 70 * mib);
  CHECK(space.active.peak == 5300);
  CHECK(space.active.current == 300);
  CHECK(profile.find_space("cuda:0 active") == nullptr);
  CHECK(missing_of(profile).empty());
}

TEST_CASE("torch cuda: an allocator keeps one listener, however many captures there are") {
  const stand_in_guard stand_in;
  for (int count = 0; count < 3; ++count) {
    auto capture = memprof::begin_capture<memprof::torch_cuda_backend>();
    stand_in.self.tell(TraceEntry::ALLOC, 0x10000000, 100);
    stand_in.self.tell(TraceEntry::FREE_REQUESTED, 0x10000000, 100);
    capture.end();
    CHECK(capture.profile().space("cuda:0").allocations == 100);
    CHECK(capture.profile().space("cuda:0").anomalies == memprof::space_anomalies{});
  }
  CHECK(stand_in.self.listeners.size() == 1);
}

TEST_CASE("torch cuda: an allocator that was put in later is listened to as well") {
  {
    const stand_in_guard first;
    (void)memprof::begin_capture<memprof::torch_cuda_backend>();
  }
  const stand_in_guard second;
  auto capture = memprof::begin_capture<memprof::torch_cuda_backend>();
  CHECK(second.self.listeners.size() == 1);
}

TEST_CASE("torch cuda: where the allocator has no trace, the rest is captured and the profile says what is missing") {
  const stand_in_guard stand_in;
  stand_in.self.refuses_listeners = true;
  const memprof::vector<memprof::missing_source> missing = not_captured();
  REQUIRE(missing.size() == 1);
  CHECK_THAT(missing[0].reason,
             StartsWith("the allocator 'stand-in' has no trace (stand-in does not yet support attachAllocatorTraceTracker); "
                        "remove backend:cudaMallocAsync from PYTORCH_CUDA_ALLOC_CONF"));
}

TEST_CASE("torch cuda: where there is no device, the rest is captured and the profile says so") {
  const stand_in_guard stand_in;
  devices = 0;
  const memprof::vector<memprof::missing_source> missing = not_captured();
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].source == "CUDA");
  CHECK(missing[0].reason == "there is no CUDA device");
}

TEST_CASE("torch cuda: where CUDA cannot be brought into use, the rest is captured and the profile says why") {
  const stand_in_guard stand_in;
  stand_in.self.is_initialized = false;
  const memprof::vector<memprof::missing_source> missing = not_captured();
  REQUIRE(missing.size() == 1);
  CHECK_THAT(missing[0].reason, StartsWith("CUDA failed to initialise ("));
}

TEST_CASE("torch cuda: CUDA that comes after a capture without it is in the next one") {
  const stand_in_guard stand_in;
  devices = 0;
  CHECK(not_captured().size() == 1);
  devices = 1;
  auto capture = memprof::begin_capture<memprof::torch_cuda_backend>();
  stand_in.self.tell(TraceEntry::ALLOC, 0x10000000, 100);
  CHECK(capture.profile().space("cuda:0").cumulative_peak == 100);
  CHECK(missing_of(capture.profile()).empty());
}
