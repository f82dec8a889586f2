#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

namespace memprof_tests::torch_pytorch_ops {

namespace {

memprof::capture_guard begin() { return begin_torch(); }

std::optional<memprof::pytorch_operation> find(const memprof::profile& profile, std::string_view name, std::string_view shapes) {
  for (const memprof::pytorch_operation& row : operators_of(profile)) {
    if (row.name == name && row.input_shapes == shapes) return row;
  }
  return std::nullopt;
}

std::unique_ptr<at::RecordFunction> begin_operator(const char* name) {
  auto function = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  function->before(name);
  return function;
}

/// A block from libtorch's allocator that no operator of its own asks for.
c10::DataPtr memory_of_no_operator(std::size_t bytes) { return c10::GetAllocator(c10::kCPU)->allocate(bytes); }

}  // namespace

TEST_CASE("pytorch operations: calls are counted by name and shapes, with their bytes") {
  const at::Tensor bias = at::ones({4});
  const at::Tensor input = at::ones({2, 8});
  const at::Tensor weight = at::ones({8, 4});
  auto capture = begin();
  at::Tensor kept;
  {
    auto ops = memprof::track_pytorch_ops();
    for (int count = 0; count < 3; ++count) kept = at::addmm(bias, input, weight);
    at::cat({input, input});
    at::sum(input);
  }
  const at::Tensor unseen = at::addmm(bias, input, weight);
  capture.end();
  const memprof::profile& profile = capture.profile();
  const std::optional<memprof::pytorch_operation> addmm = find(profile, "aten::addmm", "[4], [2, 8], [8, 4]");
  REQUIRE(addmm.has_value());
  CHECK(addmm->count == 3);
  CHECK(addmm->cpu_memory == 3 * 2 * 4 * 4);
  CHECK(addmm->cpu_time_ns > 0);
  CHECK(addmm->device_time_ns == 0);
  CHECK(addmm->device_memory == 0);
  const std::optional<memprof::pytorch_operation> cat = find(profile, "aten::cat", "[[2, 8], [2, 8]]");
  REQUIRE(cat.has_value());
  CHECK(cat->cpu_memory == 2 * 2 * 8 * 4);
  CHECK(find(profile, "aten::sum", "[2, 8]").has_value());
}

TEST_CASE("pytorch operations: bytes are those of the operator itself, times include the operators within") {
  const at::Tensor input = at::ones({2, 8});
  const at::Tensor weight = torch::ones({4, 8}, torch::requires_grad());
  const at::Tensor bias = torch::ones({4}, torch::requires_grad());
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  const at::Tensor output = at::linear(input, weight, bias);
  const memprof::profile& profile = capture.profile();
  const std::optional<memprof::pytorch_operation> outer = find(profile, "aten::linear", "[2, 8], [4, 8], [4]");
  const std::optional<memprof::pytorch_operation> inner = find(profile, "aten::addmm", "[4], [2, 8], [8, 4]");
  REQUIRE(outer.has_value());
  REQUIRE(inner.has_value());
  CHECK(outer->cpu_memory == 0);
  CHECK(inner->cpu_memory == 2 * 4 * 4);
  CHECK(outer->cpu_time_ns >= inner->cpu_time_ns);
  CHECK(operators_of(profile).front() == *inner);  // the one that allocated most comes first
}

TEST_CASE("pytorch operations: what an operator frees counts with the size that it had, also if it is older than the guard") {
  auto capture = begin();
  at::Tensor grown = at::empty({1000});
  auto ops = memprof::track_pytorch_ops();
  grown.resize_({3000});
  const std::optional<memprof::pytorch_operation> row = find(capture.profile(), "aten::resize_", "[1000]");
  REQUIRE(row.has_value());
  CHECK(row->cpu_memory == (3000 - 1000) * 4);
}

TEST_CASE("pytorch operations: scalar tensors, and inputs that are no tensors") {
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  const at::Tensor scalar = at::scalar_tensor(1.0);
  const at::Tensor sum = at::add(at::ones({2}), scalar);
  CHECK(find(capture.profile(), "aten::add", "[2], []").has_value());
  CHECK(find(capture.profile(), "aten::ones", "").has_value());
}

TEST_CASE("pytorch operations: all threads are counted") {
  const at::Tensor input = at::ones({3, 3});
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  std::thread other{[&] { (void)at::mm(input, input); }};
  other.join();
  (void)at::mm(input, input);
  const std::optional<memprof::pytorch_operation> row = find(capture.profile(), "aten::mm", "[3, 3], [3, 3]");
  REQUIRE(row.has_value());
  CHECK(row->count == 2);
  CHECK(row->cpu_memory == 2 * 36);
}

TEST_CASE("pytorch operations: beyond 4096 rows the calls are summed in one that says so") {
  auto capture = begin();
  {
    auto ops = memprof::track_pytorch_ops();
    for (std::int64_t size = 1; size <= 5000; ++size) at::alias(at::empty({size}));
  }
  capture.end();
  const auto& rows = operators_of(capture.profile());
  REQUIRE(rows.size() == 4097);
  CHECK(rows.back().name == "(beyond the first 4096 operators and shapes)");
  std::int64_t count = 0;
  for (const memprof::pytorch_operation& row : rows) count += row.count;
  CHECK(count >= 10000);
}

TEST_CASE("pytorch operations: a later capture begins without those of an earlier one") {
  auto ops = memprof::track_pytorch_ops();
  {
    auto first = begin();
    (void)at::empty({3});
    CHECK(operators_of(first.profile()).size() == 1);
  }
  auto second = begin();
  CHECK(operators_of(second.profile()).empty());
  (void)at::ones({3});
  CHECK_FALSE(operators_of(second.profile()).empty());
}

TEST_CASE("pytorch operations: an asynchronous operator has a time and no bytes, and leaves nothing behind on its thread") {
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  auto function = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  function->_setAsync();
  function->before("gloo:all_reduce");
  CHECK(memprof::detail::this_torch_thread()->call == nullptr);
  const c10::DataPtr meanwhile = memory_of_no_operator(1000);
  std::thread{[&] { function.reset(); }}.join();
  const c10::DataPtr after = memory_of_no_operator(1000);
  const std::optional<memprof::pytorch_operation> row = find(capture.profile(), "gloo:all_reduce", "");
  REQUIRE(row.has_value());
  CHECK(row->count == 1);
  CHECK(row->cpu_memory == 0);
}

TEST_CASE("pytorch operations: operators of one thread may end in the order in which they began") {
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  auto first = begin_operator("first");
  const c10::DataPtr of_first = memory_of_no_operator(1000);
  auto second = begin_operator("second");
  const c10::DataPtr of_second = memory_of_no_operator(200);
  first.reset();
  const c10::DataPtr of_second_too = memory_of_no_operator(30);
  second.reset();
  CHECK(memprof::detail::this_torch_thread()->call == nullptr);
  const c10::DataPtr of_none = memory_of_no_operator(4);
  const std::optional<memprof::pytorch_operation> outer = find(capture.profile(), "first", "");
  REQUIRE(outer.has_value());
  CHECK(outer->cpu_memory == 1000);
  const std::optional<memprof::pytorch_operation> inner = find(capture.profile(), "second", "");
  REQUIRE(inner.has_value());
  CHECK(inner->cpu_memory == 230);
}

TEST_CASE("pytorch operations: an operator that another thread ends has the memory up to then, and no more") {
  auto capture = begin();
  auto ops = memprof::track_pytorch_ops();
  auto outer = begin_operator("outer");
  auto moved = begin_operator("moved");
  const c10::DataPtr of_moved = memory_of_no_operator(1000);
  std::thread{[&] { moved.reset(); }}.join();
  const c10::DataPtr of_outer = memory_of_no_operator(200);
  outer.reset();
  CHECK(memprof::detail::this_torch_thread()->call == nullptr);
  std::optional<memprof::pytorch_operation> row = find(capture.profile(), "moved", "");
  REQUIRE(row.has_value());
  CHECK(row->cpu_memory == 1000);
  row = find(capture.profile(), "outer", "");
  REQUIRE(row.has_value());
  CHECK(row->cpu_memory == 200);
}

}  // namespace memprof_tests::torch_pytorch_ops
