// What memprof tells of CUDA against PyTorch's own statistics, to the byte, for the cases of the caching allocator. Runs on a
// GPU, and on the stand-in for CUDA. PYTORCH_CUDA_ALLOC_CONF is read by libtorch when the process begins: run it for each
// setting.
#include <memprof/backend/torch_cuda.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/missing_source.hpp>

#include <torch_cuda/agreement.hpp>
#include <torch_cuda/bring_into_use.hpp>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace agreement;

constexpr std::size_t mib = std::size_t{1} << 20;

[[nodiscard]] compared_capture begin() { return compared_capture::begin<memprof::torch_cuda_backend>(); }

/// Sizes on both sides of the allocator's limits.
[[nodiscard]] std::size_t random_size(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return 1 + random() % 4096;
    case 1: return 1 + random() % (2 * mib);
    case 2: return 1 + random() % (12 * mib);
    default: return mib * (1 + random() % 24);
  }
}

/// Allocations and frees in a random order; all are freed at the end.
void churn(std::uint64_t seed, int steps) {
  std::mt19937_64 random{seed};
  std::vector<void*> live;
  for (int step = 0; step < steps; ++step) {
    if (live.empty() || random() % 100 < (step / 50 % 2 == 0 ? 70U : 35U)) {
      live.push_back(cuda_allocator::raw_alloc(random_size(random)));
      continue;
    }
    std::swap(live[random() % live.size()], live.back());
    cuda_allocator::raw_delete(live.back());
    live.pop_back();
  }
  for (void* const block : live) cuda_allocator::raw_delete(block);
}

/// Where the allocator has no trace, a capture says so and goes on. True if that is the case.
[[nodiscard]] bool has_no_trace() {
  auto capture = memprof::begin_capture<memprof::torch_cuda_backend>();
  void* const block = cuda_allocator::raw_alloc(1000);
  cuda_allocator::raw_delete(block);
  capture.end();
  const memprof::profile profile = capture.profile();
  const auto missing = memprof::rows_of<memprof::missing_source>(profile.facts);
  if (missing.empty()) return false;
  std::printf("-- not captured: %s: %s\n", missing.front().source.c_str(), missing.front().reason.c_str());
  const std::string name = cuda_allocator::get()->name();
  check("it is not libtorch's own allocator, or one without a trace",
        name != "native" || !memprof::detail::has_trace<cuda_allocator::CUDAAllocator>);
  check("the profile says so", missing.front().reason.find("has no trace") != std::string::npos);
  check("there is no space of the device", profile.find_space("cuda:0") == nullptr);
  return true;
}

/// How many of the checks above failed, and the status to end with.
[[nodiscard]] int result() {
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

void allocations_and_frees() {
  std::puts("-- allocations and frees, and the cache given back");
  compared_capture capture = begin();
  void* kept = nullptr;
  capture.segment("KEEP", [&] { kept = cuda_allocator::raw_alloc(5 * mib + 1); });
  capture.segment("CHURN", [] { churn(1, 600); });
  capture.segment("EMPTY_CACHE", [] { cuda_allocator::emptyCache(); });
  capture.segment("CHURN_AGAIN", [] { churn(2, 300); });
  capture.segment("FREE", [&] { cuda_allocator::raw_delete(kept); });
  capture.compare();
}

void blocks_from_before() {
  std::puts("-- blocks from before the capture");
  void* const older = cuda_allocator::raw_alloc(30 * mib);
  compared_capture capture = begin();
  capture.segment("CHURN", [] { churn(3, 200); });
  capture.compare();
  cuda_allocator::raw_delete(older);
}

void threads() {
  std::puts("-- four threads");
  compared_capture capture = begin();
  capture.segment("THREADS", [] {
    std::vector<std::thread> running;
    for (std::uint64_t seed = 10; seed < 14; ++seed) running.emplace_back([seed] { churn(seed, 2000); });
    for (std::thread& one : running) one.join();
  });
  capture.compare();
}

void streams_of_their_own() {
  std::puts("-- blocks on two more streams");
  const c10::cuda::CUDAStream first = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStream second = c10::cuda::getStreamFromPool();
  cuda_allocator::emptyCache();
  compared_capture capture = begin();
  void* kept = nullptr;
  capture.segment("STREAMS", [&] {
    kept = cuda_allocator::raw_alloc_with_stream(3 * mib, first.stream());
    cuda_allocator::raw_delete(cuda_allocator::raw_alloc_with_stream(40 * mib, second.stream()));
    cuda_allocator::raw_delete(cuda_allocator::raw_alloc(100));
  });
  capture.compare();
  const memprof::profile profile = capture.profile();
  const memprof::vector<memprof::stream_usage>& rows = profile.space("cuda:0").streams;
  check("streams that were used", static_cast<std::int64_t>(rows.size()), 3);
  if (rows.size() == 3) {
    check("peak of the second stream", rows[0].cumulative_peak, 40 * mib);
    check("reserved for the second stream at least as much", rows[0].reserved_current >= std::int64_t{40 * mib});
    check("live on the first stream", rows[1].cumulative_current, 3 * mib);
    check("the third is the default stream", rows[2].stream == "default");
  }
  cuda_allocator::raw_delete(kept);
}

/// Gives the stream work that takes a GPU some milliseconds.
void occupy(const c10::cuda::CUDAStream& stream, void* block, std::size_t bytes) {
  for (int round = 0; round < 200; ++round) (void)cudaMemsetAsync(block, round, bytes, stream.stream());
}

void another_stream_uses_a_block() {
  std::puts("-- a block that another stream still uses when its tensor dies");
  const c10::cuda::CUDAStream other = c10::cuda::getStreamFromPool();
  constexpr std::size_t bytes = 64 * mib;
  compared_capture capture = begin();
  const std::int64_t requested_before = cuda_allocator::getDeviceStats(0).requested_bytes[0].current;
  std::int64_t requested_while_used = 0;
  capture.segment("DIES", [&] {
    c10::DataPtr block = cuda_allocator::get()->allocate(bytes);
    occupy(other, block.get(), bytes);
    cuda_allocator::recordStream(block, other);
    block.clear();
    requested_while_used = cuda_allocator::getDeviceStats(0).requested_bytes[0].current - requested_before;
  });
  capture.segment("STILL_USED", [] { cuda_allocator::raw_delete(cuda_allocator::raw_alloc(1000)); });
  other.synchronize();
  capture.segment("DONE", [] { cuda_allocator::raw_delete(cuda_allocator::raw_alloc(1000)); });
  capture.compare(false);
  const memprof::profile& profile = capture.profile();
  check("PyTorch keeps the block while the stream works", requested_while_used, bytes);
  check("cuda:0 when the tensor is dead", profile.space("cuda:0").segments[0].cumulative_current, 0);
  check("active bytes then", profile.space("cuda:0").active.segments[0].current, bytes);
}

/// The names of the two calls changed, and what they take.
template <class Allocator>
void allocate_to_pool(Allocator& allocator, cudaStream_t stream, const c10::cuda::MempoolId_t& pool) {
  if constexpr (requires { allocator.beginAllocateToPool(0, pool, [](cudaStream_t) { return true; }); }) {
    allocator.beginAllocateToPool(0, pool, [stream](cudaStream_t asking) { return asking == stream; });
  } else {
    allocator.beginAllocateStreamToPool(0, stream, pool);
  }
}
template <class Allocator>
void end_allocate_to_pool(Allocator& allocator, cudaStream_t stream, const c10::cuda::MempoolId_t& pool) {
  if constexpr (requires { allocator.endAllocateToPool(0, pool); }) {
    allocator.endAllocateToPool(0, pool);
  } else {
    allocator.endAllocateStreamToPool(0, stream);
  }
}

template <class Entry>
constexpr bool tells_pools = requires(const Entry& entry) {
  entry.mempool_.first;
};

void private_pool() {
  std::puts("-- a private pool, as that of a CUDA graph");
  auto& allocator = *cuda_allocator::get();
  const c10::cuda::MempoolId_t pool{0, 77};
  cuda_allocator::emptyCache();
  compared_capture capture = begin();
  void* inside = nullptr;
  capture.segment("IN_POOL", [&] {
    allocate_to_pool(allocator, nullptr, pool);
    inside = cuda_allocator::raw_alloc(7 * mib);
    cuda_allocator::raw_delete(cuda_allocator::raw_alloc(3 * mib));
    end_allocate_to_pool(allocator, nullptr, pool);
  });
  capture.segment("BESIDE", [] { churn(4, 100); });
  capture.segment("RELEASED", [&] {
    cuda_allocator::raw_delete(inside);
    allocator.releasePool(0, pool);
    cuda_allocator::emptyCache();
  });
  capture.compare();
  std::int64_t peak_of_pool = 0;
  const memprof::profile profile = capture.profile();
  for (const memprof::stream_usage& row : profile.space("cuda:0").streams) {
    if (row.pool == "0:77") peak_of_pool = row.cumulative_peak;
  }
  check("peak of the private pool", peak_of_pool, tells_pools<cuda_allocator::TraceEntry> ? 10 * mib : 0);
}

void out_of_memory() {
  std::puts("-- out of memory");
  cuda_allocator::emptyCache();
  cuda_allocator::setMemoryFraction(0.02, 0);
  std::size_t device_free = 0;
  std::size_t device_bytes = 0;
  (void)cudaMemGetInfo(&device_free, &device_bytes);
  compared_capture capture = begin();
  void* kept = nullptr;
  int thrown = 0;
  capture.segment("FULL", [&] {
    auto scope = memprof::track_operation<"too_much">();
    kept = cuda_allocator::raw_alloc(10 * mib);
    try {
      (void)cuda_allocator::raw_alloc(device_bytes / 2);
    } catch (const c10::Error&) {
      ++thrown;
    }
  });
  capture.segment("GOES_ON", [&] { cuda_allocator::raw_delete(kept); });
  cuda_allocator::setMemoryFraction(1.0, 0);
  capture.compare();
  const memprof::space_profile& space = capture.profile().space("cuda:0");
  check("PyTorch threw", thrown, 1);
  check("out-of-memory events", static_cast<std::int64_t>(space.out_of_memory.size()), 1);
  if (space.out_of_memory.size() != 1) return;
  const memprof::out_of_memory_failure& failure = space.out_of_memory.front();
  check("at least what was asked for", failure.requested >= static_cast<std::int64_t>(device_bytes / 2));
  // `roundup_power2_divisions` rounds up by a quarter at most.
  const char* const settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  const bool rounds_up = settings != nullptr && std::string_view{settings}.find("roundup") != std::string_view::npos;
  const std::size_t rounding = rounds_up ? device_bytes / 8 : 2 * mib;
  check("and no more than it is rounded up", failure.requested < static_cast<std::int64_t>(device_bytes / 2 + rounding));
  check("live then", failure.live_bytes, 10 * mib);
  check("reserved then", failure.reserved_bytes, space.reserved.segments[0].current);
  check("free on the device then", failure.device_free <= static_cast<std::int64_t>(device_free - 10 * mib));
  check("it names the operation", failure.operation == "too_much");
}

}  // namespace

int main() {
  if (!bring_cuda_into_use()) {
    std::puts("skipped: there is no CUDA device");
    return 77;
  }
  (void)cuda_allocator::raw_alloc(1);  // whatever libtorch makes first is there before the first capture
  if (has_no_trace()) return result();
  allocations_and_frees();
  blocks_from_before();
  threads();
  streams_of_their_own();
  another_stream_uses_a_block();
  private_pool();
  out_of_memory();
  return result();
}
