#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

namespace memprof_tests::torch_no_dispatch_beside_others {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("torch no_dispatch: torch_allocations in the same capture is refused, and leaves nothing attached") {
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  const auto check_refusal = [&](auto begin) {
    std::string said;
    try {
      auto capture = begin();
    } catch (const memprof::error& refusal) {
      said = refusal.what();
    }
    CHECK_THAT(said, ContainsSubstring("use only one of torch_backend, torch_allocations and torch_no_dispatch"));
    CHECK(c10::GetAllocator(c10::kCPU) == before);
    CHECK(torch::ones({8}).sum().item<float>() == 8.0F);
    CHECK_FALSE(torch::cuda::is_available());
  };
  const memprof::capture_options cuda{.device = {"cuda"}};
  check_refusal([&] { return memprof::begin_capture<memprof::torch_allocations, memprof::torch_no_dispatch>(cuda); });
  check_refusal([&] { return memprof::begin_capture<memprof::torch_no_dispatch, memprof::torch_allocations>(cuda); });
  check_refusal([&] { return memprof::begin_capture<memprof::torch_allocations, memprof::torch_allocations>(cuda); });
  for (int count = 0; count < 2; ++count) {  // each alone, and again after the other
    {
      auto capture = begin_torch_allocations();
      const auto a = torch::ones({8});
      CHECK(capture.profile().space("cpu").cumulative_current == 32);
    }
    auto capture = begin_no_dispatch();
    const auto a = torch::ones({8});
    CHECK(a.data_ptr<float>() != nullptr);
    CHECK(capture.profile().space("cpu").cumulative_current == 32);
    CHECK(capture.profile().anomalies == memprof::event_anomalies{});
  }
}

TEST_CASE("torch no_dispatch: torch_backend in the same capture is refused, and leaves nothing attached") {
  c10::Allocator* const before = c10::GetAllocator(c10::kCPU);
  const auto check_refusal = [&](auto begin) {
    std::string said;
    try {
      auto capture = begin();
    } catch (const memprof::error& refusal) {
      said = refusal.what();
    }
    CHECK_THAT(said, ContainsSubstring("use only one of torch_backend and torch_no_dispatch"));
    CHECK(c10::GetAllocator(c10::kCPU) == before);
    CHECK(torch::ones({8}).sum().item<float>() == 8.0F);
    CHECK_FALSE(torch::cuda::is_available());
  };
  const memprof::capture_options cuda{.device = {"cuda"}};
  check_refusal([&] { return memprof::begin_capture<memprof::torch_backend, memprof::torch_no_dispatch>(cuda); });
  check_refusal([&] { return memprof::begin_capture<memprof::torch_no_dispatch, memprof::torch_backend>(cuda); });
  {
    auto capture = begin_torch();
    const auto a = torch::ones({8});
    CHECK(capture.profile().space("cpu").cumulative_current == 32);
  }
  auto capture = begin_no_dispatch();
  const auto a = torch::ones({8});
  CHECK(capture.profile().space("cpu").cumulative_current == 32);
  CHECK(capture.profile().anomalies == memprof::event_anomalies{});
}

}  // namespace memprof_tests::torch_no_dispatch_beside_others
