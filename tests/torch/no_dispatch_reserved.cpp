#include "captures.hpp"
#include "fault_of.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/simulated_caching_allocator.hpp>

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace memprof_tests::torch_no_dispatch_reserved {

constexpr std::int64_t mib = std::int64_t{1} << 20;

[[nodiscard]] at::Tensor block_of(std::int64_t bytes) {
  return torch::empty({bytes}, torch::TensorOptions(torch::kCUDA).dtype(torch::kByte));
}

/// Has a model follow the fake device.
class followed_device {
 public:
  explicit followed_device(std::int64_t capacity) : model_(options_of(capacity)) {}

  [[nodiscard]] memprof::simulated_caching_allocator& model() noexcept { return model_; }

 private:
  [[nodiscard]] static memprof::caching_allocator_options options_of(std::int64_t capacity) {
    memprof::caching_allocator_options options;
    options.capacity = capacity;
    return options;
  }

  memprof::simulated_caching_allocator model_;
  memprof::torch_device_scope<memprof::simulated_caching_allocator> scope_{model_};
};

TEST_CASE("torch no_dispatch: a profile has what PyTorch's allocator reserves on the fake device") {
  followed_device device{0};
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  const auto reserved = [&] { return capture.profile().space("cuda:0").reserved.current; };
  at::Tensor small = block_of(1);
  at::Tensor large = block_of(5 * mib);
  CHECK(reserved() == 22 * mib);  // segments of 2 and of 20
  CHECK(device.model().stats().small_pool.allocated_bytes.current == 512);
  CHECK(device.model().stats().large_pool.allocated_bytes.current == 5 * mib);
  large.reset();
  CHECK(reserved() == 22 * mib);
  device.model().empty_cache();
  CHECK(reserved() == 2 * mib);
  CHECK(capture.profile().space("cuda:0").reserved.peak == 22 * mib);
  device.model().reset_peak_stats();
  device.model().reset_accumulated_stats();
  CHECK(device.model().stats().all.reserved_bytes == memprof::allocator_stat{2 * mib, 2 * mib, 0, 0});
}

TEST_CASE("torch no_dispatch: a full fake device fails as PyTorch does, and the program may try again with less") {
  followed_device device{64 * mib};
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  at::Tensor kept = block_of(40 * mib);
  CHECK_THROWS_AS(block_of(25 * mib), c10::OutOfMemoryError);
  // The text of PyTorch 2.13, and its own function for sizes; 26 MiB would be reserved.
  using c10::CachingAllocator::format_size;
  CHECK(fault_of([] { (void)block_of(25 * mib); }) ==
        c10::str("CUDA out of memory. Tried to allocate ", format_size(26 * mib), ". GPU 0 has a total capacity of ",
                 format_size(64 * mib), " of which ", format_size(24 * mib),
                 " is free. Including non-PyTorch memory, this process has ", format_size(40 * mib),
                 " memory in use. Of the allocated memory ", format_size(40 * mib), " is allocated by PyTorch, and ",
                 format_size(0),
                 " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
                 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
                 "Management  "
                 "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"));
  CHECK(device.model().stats().all.num_ooms == 2);
  const at::Tensor fits = block_of(24 * mib);
  CHECK(device.model().stats().all.allocation == memprof::allocator_stat{2, 2, 2, 0});
  const auto failures = capture.profile().space("cuda:0").out_of_memory;
  REQUIRE(failures.size() == 2);
  CHECK(failures[0].requested == 25 * mib);
  CHECK(failures[0].device_free == 24 * mib);
}

}  // namespace memprof_tests::torch_no_dispatch_reserved
