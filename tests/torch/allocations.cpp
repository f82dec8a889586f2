#include "captures.hpp"
#include "invocations.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace memprof_tests::torch_allocations {

namespace {

memprof::capture_guard begin() { return begin_torch_allocations(); }

}  // namespace

TEST_CASE("torch allocations: a tensor counts with the bytes of its elements, while it lives") {
  auto capture = begin();
  {
    const at::Tensor floats = at::empty({3, 5});
    CHECK(live_bytes_now(capture) == 3 * 5 * 4);
    const at::Tensor halves = at::empty({7}, at::kHalf);
    CHECK(live_bytes_now(capture) == 3 * 5 * 4 + 7 * 2);
  }
  capture.end();
  const memprof::space_profile& cpu = capture.profile().space("cpu");
  CHECK(cpu.cumulative_peak == 74);
  CHECK(cpu.cumulative_current == 0);
  CHECK(cpu.allocation_count == 2);
  CHECK(cpu.deallocation_count == 2);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
  CHECK(capture.profile().exact);
}

TEST_CASE("torch allocations: views, borrowed memory and tensors without elements allocate nothing") {
  auto capture = begin();
  const at::Tensor whole = at::empty({10, 10});
  std::vector<float> foreign(1000);
  {
    const at::Tensor view = whole.view({100}).slice(0, 5, 50).unsqueeze(0);
    const at::Tensor transposed = whole.t();
    const at::Tensor borrowed = at::from_blob(foreign.data(), {1000});
    const at::Tensor nothing = at::empty({0});
    const at::Tensor no_columns = at::empty({4, 0});
    CHECK(live_bytes_now(capture) == 400);
  }
  capture.end();
  CHECK(capture.profile().space("cpu").allocation_count == 1);
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch allocations: every thread is seen, with what one frees for another") {
  auto capture = begin();
  at::Tensor of_thread;
  std::thread plain{[&] { of_thread = at::empty({1000}); }};
  plain.join();
  CHECK(live_bytes_now(capture) == 4000);

  std::atomic<int> launched{0};
  at::Tensor of_pool;
  at::launch([&] {
    of_pool = at::empty({500});
    launched.store(1);
    launched.notify_one();
  });
  launched.wait(0);
  CHECK(live_bytes_now(capture) == 6000);

  at::Tensor of_workers[4];
  at::parallel_for(0, 4, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) of_workers[index] = at::empty({100});
  });
  CHECK(live_bytes_now(capture) == 7600);

  of_thread.reset();
  CHECK(live_bytes_now(capture) == 3600);
  capture.end();
  CHECK(capture.profile().space("cpu").anomalies.cross_thread_frees.bytes == 4000);
}

TEST_CASE("torch allocations: the backward pass of a thread is seen") {
  auto capture = begin();
  at::Tensor weight = torch::ones({64, 64}, torch::requires_grad());
  std::thread trainer{[&] { at::mm(weight, weight).sum().backward(); }};
  trainer.join();
  REQUIRE(weight.grad().defined());
  CHECK(live_bytes_now(capture) == 2 * 64 * 64 * 4);  // the weight and its gradient
}

TEST_CASE("torch allocations: tensors from before the capture are no part of it, and may be freed in it and after it") {
  at::Tensor from_before = at::empty({1000});
  at::Tensor outliving;
  {
    auto capture = begin();
    from_before.reset();
    outliving = at::empty({10});
    capture.end();
    const memprof::space_profile& cpu = capture.profile().space("cpu");
    CHECK(cpu.allocations == 40);
    CHECK(cpu.deallocations == 0);
    CHECK(cpu.cumulative_current == 40);
  }
  outliving.fill_(2);
  CHECK(outliving.sum().item<float>() == 20.0F);
}

TEST_CASE("torch allocations: a second capture counts the end of a block from the first as an unmatched free") {
  at::Tensor outliving;
  {
    auto first = begin();
    outliving = at::empty({10});
  }
  auto second = begin();
  const at::Tensor own = at::empty({3});
  outliving.reset();
  second.end();
  const memprof::space_profile& cpu = second.profile().space("cpu");
  CHECK(cpu.cumulative_peak == 12);
  CHECK(cpu.cumulative_current == 12);
  CHECK(cpu.anomalies.unmatched_frees.count == 1);
}

TEST_CASE("torch allocations: after a capture libtorch has the allocator that it had before") {
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  {
    auto capture = begin();
    CHECK(c10::GetAllocator(c10::kCPU) != before);
  }
  CHECK(c10::GetAllocator(c10::kCPU) == before);
}

TEST_CASE("torch allocations: a capture without the backend says nothing of tensors, though their deleter is memprof's") {
  at::Tensor outliving;
  {
    auto first = begin();
    outliving = at::empty({10});
  }
  auto second = memprof::begin_capture();
  outliving.reset();
  const at::Tensor unseen = at::empty({10});
  second.end();
  CHECK(second.profile().spaces.empty());
}

TEST_CASE("torch allocations: a tensor made in the capture grows in it, and one from before grows unseen") {
  at::Tensor from_before = at::empty({10});
  auto capture = begin();
  at::Tensor made_in = at::empty({10});
  made_in.resize_({1000});
  CHECK(live_bytes_now(capture) == 4000);
  from_before.resize_({100000});  // its storage keeps the allocator it was made with
  CHECK(live_bytes_now(capture) == 4000);
  made_in.reset();
  CHECK(live_bytes_now(capture) == 0);
}

TEST_CASE("torch allocations: raw blocks are what they are without memprof") {
  auto capture = begin();
  c10::Allocator* const allocator = c10::GetAllocator(c10::kCPU);
  void* const raw = allocator->raw_allocate(100);
  CHECK(live_bytes_now(capture) == 100);
  allocator->raw_deallocate(raw);
  allocator->raw_deallocate(allocator->raw_allocate(0));
  CHECK(live_bytes_now(capture) == 0);
  CHECK(capture.profile().space("cpu").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch allocations: a lazy copy takes memory when it is written") {
  const auto lazy_clone = c10::Dispatcher::singleton().findSchema({"aten::_lazy_clone", ""});
  if (!lazy_clone.has_value()) SKIP("this libtorch has no lazy copies");
  auto capture = begin();
  at::Tensor original = at::ones({25});
  at::Tensor copy = lazy_clone->typed<at::Tensor(const at::Tensor&)>().call(original);
  CHECK(live_bytes_now(capture) == 100);
  copy.fill_(2);
  CHECK(live_bytes_now(capture) == 200);
  CHECK(original.sum().item<float>() == 25.0F);
  original.reset();
  copy.reset();
  CHECK(live_bytes_now(capture) == 0);
}

TEST_CASE("torch allocations: two backends that record the same tensors are refused, and the program goes on") {
  CHECK_THROWS_AS((memprof::begin_capture<memprof::torch_allocations, memprof::torch_backend>()), memprof::error);
  CHECK_THROWS_AS((memprof::begin_capture<memprof::torch_backend, memprof::torch_allocations>()), memprof::error);
  CHECK_THROWS_AS((memprof::begin_capture<memprof::torch_backend, memprof::torch_backend>()), memprof::error);
  CHECK(at::ones({4}).sum().item<float>() == 4.0F);
  auto capture = begin();
  const at::Tensor tensor = at::empty({4});
  CHECK(live_bytes_now(capture) == 16);
  capture.end();
  CHECK(invocations_of(capture.profile(), "aten::empty") == 0);  // no observer of operators was left
}

}  // namespace memprof_tests::torch_allocations
