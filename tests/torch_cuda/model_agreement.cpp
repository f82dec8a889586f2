// The model of the caching allocator against PyTorch's own: random requests to both, and after each of them all counters of the
// one must be those of the other. Settings are those of PYTORCH_CUDA_ALLOC_CONF; the device is as large as it is, or, on the
// stand-in for CUDA, as STAND_IN_CUDA_BYTES says. Arguments: number of sequences, requests in each, and the fraction of the
// device that may be used.
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>

#include <property/random_requests.hpp>
#include <torch_cuda/bring_into_use.hpp>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace cuda_allocator = c10::cuda::CUDACachingAllocator;
using memprof::caching_allocator_stats;
using memprof::property::request;
using memprof::property::request_kind;

template <class Stat>
[[nodiscard]] memprof::allocator_stat to_stat(const Stat& stat) {
  return {stat[0].current, stat[0].peak, stat[0].allocated, stat[0].freed};
}

/// PyTorch's counters under the names of the model's. Those that an older version does not have are 0.
template <class Stats>
[[nodiscard]] caching_allocator_stats to_model(const Stats& of_device) {
  caching_allocator_stats result;
  result.allocation = to_stat(of_device.allocation);
  result.segment = to_stat(of_device.segment);
  result.requested_bytes = to_stat(of_device.requested_bytes);
  result.allocated_bytes = to_stat(of_device.allocated_bytes);
  result.active_bytes = to_stat(of_device.active_bytes);
  result.reserved_bytes = to_stat(of_device.reserved_bytes);
  result.inactive_split_bytes = to_stat(of_device.inactive_split_bytes);
  if constexpr (requires { of_device.num_device_alloc; }) {
    result.num_device_alloc = of_device.num_device_alloc;
    result.num_device_free = of_device.num_device_free;
  }
  result.num_alloc_retries = of_device.num_alloc_retries;
  result.num_ooms = of_device.num_ooms;
  return result;
}

[[nodiscard]] caching_allocator_stats statistics() { return to_model(cuda_allocator::getDeviceStats(0)); }

template <class Stats>
constexpr bool counts_device_allocations = requires(const Stats& of_device) {
  of_device.num_device_alloc;
};

/// What the counters have grown by since `before`, where they only grow.
[[nodiscard]] caching_allocator_stats since(caching_allocator_stats now, const caching_allocator_stats& before) {
  for (const auto stat : {&caching_allocator_stats::allocation, &caching_allocator_stats::segment,
                          &caching_allocator_stats::requested_bytes, &caching_allocator_stats::allocated_bytes,
                          &caching_allocator_stats::active_bytes, &caching_allocator_stats::reserved_bytes}) {
    (now.*stat).allocated -= (before.*stat).allocated;
    (now.*stat).freed -= (before.*stat).freed;
  }
  now.inactive_split_bytes.reset_accumulated();
  now.num_device_alloc -= before.num_device_alloc;
  now.num_device_free -= before.num_device_free;
  now.num_alloc_retries -= before.num_alloc_retries;
  now.num_ooms -= before.num_ooms;
  return now;
}

/// The model's, without what this version of PyTorch does not count, or counts in more steps.
[[nodiscard]] caching_allocator_stats comparable(caching_allocator_stats stats) {
  using of_pytorch = decltype(cuda_allocator::getDeviceStats(0));
  stats.inactive_split_bytes.reset_accumulated();
  if (!counts_device_allocations<of_pytorch>) stats.num_device_alloc = stats.num_device_free = 0;
  return stats;
}

[[nodiscard]] std::string to_text(const caching_allocator_stats& stats) {
  std::string text;
  for (const auto& [name, stat] : {std::pair{"requested", stats.requested_bytes}, std::pair{"allocated", stats.allocated_bytes},
                                   std::pair{"active", stats.active_bytes}, std::pair{"reserved", stats.reserved_bytes},
                                   std::pair{"inactive split", stats.inactive_split_bytes}}) {
    text += std::string{name} + " " + std::to_string(stat.current) + " (peak " + std::to_string(stat.peak) + "), ";
  }
  return text + "device allocations " + std::to_string(stats.num_device_alloc) + ", frees " +
         std::to_string(stats.num_device_free) + ", retries " + std::to_string(stats.num_alloc_retries) + ", failures " +
         std::to_string(stats.num_ooms);
}

/// CUDA's streams by the numbers of a sequence.
[[nodiscard]] cudaStream_t stream_of(std::uint64_t number) {
  static std::vector<cudaStream_t> streams{nullptr};
  while (streams.size() <= number) {
    streams.emplace_back();
    (void)cudaStreamCreateWithPriority(&streams.back(), cudaStreamNonBlocking, 0);
  }
  return streams[number];
}

/// Null if the device is full.
[[nodiscard]] void* allocate(const request& asked) {
  try {
    return cuda_allocator::raw_alloc_with_stream(asked.bytes, stream_of(asked.stream));
  } catch (const c10::Error&) {
    return nullptr;
  }
}

/// One sequence on both. The first request after which they differ; empty if there is none.
class comparison {
 public:
  comparison(const memprof::caching_allocator_options& options, std::size_t allocations)
      : model_(options), of_model_(allocations), of_pytorch_(allocations), before_(statistics()) {}
  comparison(const comparison&) = delete;
  comparison& operator=(const comparison&) = delete;
  ~comparison() {
    for (void* const block : of_pytorch_) {
      if (block != nullptr) cuda_allocator::raw_delete(block);
    }
  }

  [[nodiscard]] std::string run(const std::vector<request>& requests) {
    for (std::size_t index = 0; index < requests.size(); ++index) {
      apply(requests[index]);
      const caching_allocator_stats found = comparable(model_.stats());
      const caching_allocator_stats expected = since(statistics(), before_);
      if (found == expected) continue;
      return "request " + std::to_string(index) + "\n  model   " + to_text(found) + "\n  PyTorch " + to_text(expected);
    }
    return {};
  }

  [[nodiscard]] const caching_allocator_stats& stats() const { return model_.stats(); }

 private:
  void apply(const request& asked) {
    switch (asked.kind) {
      case request_kind::allocate:
        of_model_[asked.block] = model_.allocate(asked.bytes, asked.stream);
        of_pytorch_[asked.block] = allocate(asked);
        break;
      case request_kind::deallocate:
        if (of_model_[asked.block] != nullptr) model_.deallocate(of_model_[asked.block]);
        if (of_pytorch_[asked.block] != nullptr) cuda_allocator::raw_delete(std::exchange(of_pytorch_[asked.block], nullptr));
        break;
      case request_kind::empty_cache:
        model_.empty_cache();
        cuda_allocator::emptyCache();
        break;
      default: break;  // when the work of another stream ends is not known to a model
    }
  }

  memprof::caching_allocator model_;
  std::vector<const memprof::cached_block*> of_model_;
  std::vector<void*> of_pytorch_;
  caching_allocator_stats before_;
};

}  // namespace

int main(int count, char** arguments) {
  if (!agreement::bring_cuda_into_use()) {
    std::puts("skipped: there is no CUDA device");
    return 77;
  }
  const auto number = [&](int index, double otherwise) {
    return index < count ? std::strtod(arguments[index], nullptr) : otherwise;
  };
  const auto sequences = static_cast<std::uint64_t>(number(1, 100));
  const auto steps = static_cast<std::size_t>(number(2, 400));
  const double fraction = number(3, 1);

  const char* const settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  auto options = memprof::parse_cuda_alloc_conf(settings == nullptr ? "" : settings);
  cudaDeviceProp properties{};
  (void)cudaGetDeviceProperties(&properties, 0);
  options.capacity = static_cast<std::int64_t>(properties.totalGlobalMem);
  options.per_process_memory_fraction = fraction;
  if (fraction < 1) cuda_allocator::setMemoryFraction(fraction, 0);

  std::uint64_t different = 0;
  std::uint64_t requests = 0;
  std::int64_t failures = 0;
  std::int64_t retries = 0;
  for (std::uint64_t seed = 0; seed < sequences; ++seed) {
    cuda_allocator::emptyCache();
    cuda_allocator::resetPeakStats(0);
    const memprof::property::request_sequence sequence = memprof::property::random_requests(seed, steps, {.uses_pools = false});
    comparison both{options, sequence.allocations};
    const std::string difference = both.run(sequence.requests);
    requests += sequence.requests.size();
    failures += both.stats().num_ooms;
    retries += both.stats().num_alloc_retries;
    if (difference.empty()) continue;
    if (++different <= 3) std::printf("sequence %llu: %s\n", static_cast<unsigned long long>(seed), difference.c_str());
  }
  std::printf("%llu sequences, %llu requests, %lld retries, %lld failures: %llu sequences differ\n",
              static_cast<unsigned long long>(sequences), static_cast<unsigned long long>(requests),
              static_cast<long long>(retries), static_cast<long long>(failures), static_cast<unsigned long long>(different));
  return different == 0 ? 0 : 1;
}
