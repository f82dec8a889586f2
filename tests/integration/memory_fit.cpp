// From a program's allocations through a capture's events to the answer whether they would fit on a GPU.
#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_fit_text.hpp>
#include <memprof/trace/trace.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof_tests::integration_memory_fit {

namespace {

constexpr std::size_t mib = 1 << 20;

/// A step that keeps 100 MiB, and for a moment needs 60 more in `backward/scores`. Nothing is really allocated.
void train(memprof::memory_resource& memory) {
  void* const weights = memory.allocate(100 * mib);
  {
    const auto backward = memprof::track_operation<"backward">();
    const auto scores = memprof::track_operation<"scores">();
    void* const temporary = memory.allocate(60 * mib);
    memory.deallocate(temporary, 60 * mib);
  }
  memory.deallocate(weights, 100 * mib);
}

}  // namespace

TEST_CASE("memory fit: a capture without dispatch tells at which operation its program would run out of memory") {
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch, .trace = &recorded});
  memprof::memory_resource memory{"cuda:0"};
  train(memory);
  capture.end();

  memprof::allocation_sequence sequence{"cuda:0"};
  recorded.visit(sequence);
  REQUIRE(sequence.steps().size() == 4);

  memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf("max_split_size_mb:64");
  options.capacity = 128 * mib;
  const memprof::memory_fit fit = memprof::fit_memory(sequence, options);
  REQUIRE_FALSE(fit.fits());
  CHECK(fit.first_failure->requested == 60 * mib);
  CHECK(fit.first_failure->free() == 28 * mib);
  const std::string operation = memprof::operation_path(sequence, fit.first_failure->operation);
  CHECK(operation == "backward/scores");
  CHECK(memprof::to_text(fit, operation)
            .starts_with("Does not fit in 128.00 MB: out of memory requesting 60.00 MB in operation backward/scores (event "));
  CHECK(memprof::smallest_capacity(sequence, options) == static_cast<std::int64_t>(160 * mib));
  CHECK(fit.unlimited_stats.requested_bytes.peak == capture.profile().space("cuda:0").cumulative_peak);
}

}  // namespace memprof_tests::integration_memory_fit
