#include "captures.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace memprof_tests::torch_other_profilers {

// Profilers of others in the same process: both see what they see alone.

namespace {

/// What libtorch tells who profiles memory on this thread.
struct memory_reporter final : c10::MemoryReportingInfoBase {
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    (bytes > 0 ? allocated : freed) += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }
};

void compute() { (void)at::mm(at::ones({8, 16}), at::ones({16, 4})); }

/// How often libtorch's own profiler sees the product and the making of its inputs while `run` runs.
template <class Run>
std::multiset<std::string> names_of_kineto(Run run) {
  namespace profiler = torch::autograd::profiler;
  const torch::profiler::impl::ProfilerConfig config{torch::profiler::impl::ProfilerState::KINETO, true, true};
  const std::set<torch::profiler::impl::ActivityType> activities{torch::profiler::impl::ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  run();
  const auto result = profiler::disableProfiler();
  std::multiset<std::string> names;
  for (const auto& event : result->events()) {
    if (event.name().substr(0, 6) == "aten::") names.insert(event.name());
  }
  return names;
}

std::int64_t self_allocated(const memprof::profile& profile, const char* path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? -1 : found->usage[0].self_allocated;
}

}  // namespace

TEST_CASE("torch other profilers: one that libtorch reports memory to sees every block, and so is the capture") {
  const auto reporter = std::make_shared<memory_reporter>();
  const c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reporter};
  auto capture = begin_torch();
  {
    const at::Tensor kept = at::empty({100});
    CHECK(reporter->allocated == 400);
    CHECK(live_bytes_now(capture) == 400);
  }
  capture.end();
  CHECK(reporter->freed == -400);
  CHECK(capture.profile().space("cpu").cumulative_current == 0);
  CHECK(self_allocated(capture.profile(), "aten::empty") == 400);
}

TEST_CASE("torch other profilers: libtorch's own sees the same operators in a capture, around it and without it") {
  const std::multiset<std::string> alone = names_of_kineto(compute);
  if (alone.empty()) SKIP("this libtorch was built without its profiler, Kineto");
  CHECK(alone.count("aten::mm") == 1);
  CHECK(alone.count("aten::ones") == 2);

  const auto check = [](const memprof::profile& profile) {
    CHECK(self_allocated(profile, "aten::mm") == 8 * 4 * 4);
    CHECK(self_allocated(profile, "aten::ones/aten::empty") == (8 * 16 + 16 * 4) * 4);
    CHECK(profile.space("cpu").cumulative_current == 0);
    CHECK(profile.anomalies == memprof::event_anomalies{});
  };
  auto around = begin_torch();
  CHECK(names_of_kineto(compute) == alone);
  around.end();
  check(around.profile());

  CHECK(names_of_kineto([&] {
          auto within = begin_torch();
          compute();
          within.end();
          check(within.profile());
        }) == alone);
}

}  // namespace memprof_tests::torch_other_profilers
