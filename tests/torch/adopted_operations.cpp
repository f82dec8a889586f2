#include "captures.hpp"

#include <memprof/memprof.hpp>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string_view>

namespace memprof_tests::torch_adopted_operations {

namespace {

const memprof::operation_usage* usage_of(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? nullptr : &found->usage[0];
}

}  // namespace

TEST_CASE("torch adopted operations: workers of at::parallel_for work for the scope that calls it") {
  at::set_num_threads(4);
  auto capture = begin_torch_allocations();
  {
    const auto scope = memprof::track_operation<"load">();
    const memprof::operation_handle load = memprof::current_operation();
    at::Tensor rows[8];
    at::parallel_for(0, 8, 1, [&](std::int64_t begin, std::int64_t end) {
      const auto adopted = memprof::adopt_operation(load);
      for (std::int64_t row = begin; row < end; ++row) rows[row] = at::empty({100});
    });
  }
  capture.end();
  const memprof::operation_usage* const load = usage_of(capture.profile(), "load");
  REQUIRE(load != nullptr);
  CHECK(load->allocated == 8 * 400);
  CHECK(load->peak == 8 * 400);
  CHECK(load->max_delta == 0);
  CHECK(load->inferred == 0);
}

TEST_CASE("torch adopted operations: with infer_operations, workers need no change") {
  at::set_num_threads(4);
  auto capture = begin_torch_allocations({.infer_operations = true});
  {
    const auto scope = memprof::track_operation<"load">();
    at::Tensor rows[8];
    at::parallel_for(0, 8, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) rows[row] = at::empty({100});
    });
  }
  capture.end();
  const memprof::operation_usage* const load = usage_of(capture.profile(), "load");
  REQUIRE(load != nullptr);
  CHECK(load->allocated == 8 * 400);
  CHECK(load->peak == 8 * 400);
}

}  // namespace memprof_tests::torch_adopted_operations
