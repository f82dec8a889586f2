// Measures the backend for CUDA without libtorch on a real GPU: how exact it is, and what a pair of calls costs. Prints a table
// of docs/accuracy.md; exit status 1 if a number differs, 2 if CUDA is not captured. benchmarks/gpu/run_plain builds and runs it.
#include <memprof/backend/cuda.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/cuda_memory.hpp>
#include <memprof/profile/fact/missing_source.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
bool is_exact = true;

void require(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "plain_cuda: %s\n", cudaGetErrorString(result));
  std::exit(2);
}

void compare(const char* what, std::int64_t captured, std::int64_t from_cuda) {
  std::printf("| %s | %lld | %lld | %s |\n", what, static_cast<long long>(captured), static_cast<long long>(from_cuda),
              captured == from_cuda ? "equal" : "DIFFERS");
  is_exact = is_exact && captured == from_cuda;
}

std::int64_t used_bytes() {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&free_bytes, &total));
  return static_cast<std::int64_t>(total - free_bytes);
}

/// Whole multiples of the driver's granularity, so that the device gives what was asked for.
void check_plain_blocks() {
  const std::int64_t without = used_bytes();
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  const std::int64_t before = used_bytes();
  std::printf("| what CUPTI takes of the device while a capture is active | | %lld | |\n", static_cast<long long>(before - without));
  std::vector<void*> blocks;
  for (const std::int64_t bytes : {64 * mib, 128 * mib, 32 * mib, 256 * mib}) {
    blocks.push_back(nullptr);
    require(cudaMalloc(&blocks.back(), static_cast<std::size_t>(bytes)));
  }
  require(cudaFree(blocks[1]));
  const std::int64_t held = used_bytes() - before;
  memprof::snapshot("HELD");
  const memprof::profile profile = capture.profile();
  const auto missing = memprof::rows_of<memprof::missing_source>(profile.facts);
  if (!missing.empty()) {
    std::fprintf(stderr, "plain_cuda: CUDA is not captured: %s\n", missing[0].reason.c_str());
    std::exit(2);
  }
  compare("cudaMalloc, live bytes and the change of cudaMemGetInfo", profile.space("cuda:0").cumulative_current, held);
  for (const std::size_t index : {0, 2, 3}) require(cudaFree(blocks[index]));
  capture.end();
  const memprof::profile whole = capture.profile();
  compare("cudaMalloc, peak and the sum of requests", whole.space("cuda:0").cumulative_peak, 480 * mib);
  compare("cudaFree, live at the end", whole.space("cuda:0").cumulative_current, 0);
  compare("unmatched frees", whole.space("cuda:0").anomalies.unmatched_frees.count, 0);
}

/// A pool's own marks, and those of the capture.
void check_pool() {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreate(&stream));
  cudaMemPool_t pool = nullptr;
  require(cudaDeviceGetDefaultMemPool(&pool, 0));
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  void* first = nullptr;
  void* second = nullptr;
  require(cudaMallocAsync(&first, 64 * mib, stream));
  require(cudaMallocAsync(&second, 32 * mib, stream));
  require(cudaFreeAsync(second, stream));
  std::uint64_t used_peak = 0;
  require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used_peak));  // before the snapshot resets it
  memprof::snapshot("POOL");
  require(cudaStreamSynchronize(stream));
  std::uint64_t used = 0;
  require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  const memprof::profile profile = capture.profile();
  compare("cudaMallocAsync, peak and the pool's UsedMemHigh", profile.space("cuda:0").cumulative_peak,
          static_cast<std::int64_t>(used_peak));
  compare("cudaFreeAsync and a wait, active bytes and the pool's UsedMemCurrent", profile.space("cuda:0").active.current,
          static_cast<std::int64_t>(used));
  for (const auto& row : memprof::rows_of<memprof::cuda_pool_memory>(profile.facts)) {
    if (row.segment == "POOL") compare("the table cuda_pools, used_peak", row.used_peak, static_cast<std::int64_t>(used_peak));
  }
  require(cudaFreeAsync(first, stream));
  require(cudaStreamSynchronize(stream));
  capture.end();
  require(cudaStreamDestroy(stream));
}

template <class Pair>
double ns_each(Pair pair) {
  constexpr int pairs = 20000;
  for (int warm = 0; warm < pairs / 10; ++warm) pair();
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done < pairs; ++done) pair();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / pairs;
}

/// Rounds of off and on in turn: their difference is the backend's.
template <class Pair>
void measure(const char* what, Pair pair) {
  for (int round = 0; round < 3; ++round) {
    const double off = ns_each(pair);
    auto capture = memprof::begin_capture<memprof::cuda_backend>();
    const double on = ns_each(pair);
    capture.end();
    std::printf("| %s | %.0f ns | %.0f ns | %+.0f ns |\n", what, off, on, on - off);
  }
}

}  // namespace

int main() {
  require(cudaFree(nullptr));  // makes the context
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0));
  std::printf("GPU: %s\n\n| what | memprof | CUDA | |\n|---|--:|--:|---|\n", device.name);
  check_plain_blocks();
  check_pool();
  std::printf("\n| a pair of | no capture | capture | difference |\n|---|--:|--:|--:|\n");
  measure("cudaMalloc and cudaFree, 4 KiB", [] {
    void* block = nullptr;
    require(cudaMalloc(&block, 4096));
    require(cudaFree(block));
  });
  measure("cudaMallocAsync and cudaFreeAsync, 4 KiB", [] {
    void* block = nullptr;
    require(cudaMallocAsync(&block, 4096, nullptr));
    require(cudaFreeAsync(block, nullptr));
  });
  return is_exact ? 0 : 1;
}
