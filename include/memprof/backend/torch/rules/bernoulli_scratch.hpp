#pragma once

#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/record/recorder.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace memprof::inline MEMPROF_ABI::detail {

/// Sums what libtorch's CPU allocator reports on this thread.
struct reported_bytes final : c10::MemoryReportingInfoBase {
  std::int64_t allocated = 0;

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    if (bytes > 0) allocated += bytes;
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
};

/// Whether this libtorch draws booleans on the CPU as integers first, in a separate tensor: builds with MKL did so up to some
/// version after 2.6. Determined once, with 16 numbers and a separate generator.
[[nodiscard]] inline bool draws_integers() {
  static const bool answer = [] {
    const recording_suppressor hidden;
    const at::DisableRecordFunctionGuard unseen;
    const kernel_scope for_real{max_kernel_bytes, true};
    at::Tensor drawn = at::empty({16}, at::TensorOptions{}.dtype(at::kFloat).device(at::kCPU));
    const auto reported = std::make_shared<reported_bytes>();
    const c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reported};
    drawn.bernoulli_(0.5, at::detail::createCPUGenerator());
    return reported->allocated >= static_cast<std::int64_t>(16 * sizeof(std::int32_t));
  }();
  return answer;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
