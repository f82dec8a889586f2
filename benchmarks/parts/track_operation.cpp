#include <memprof/memprof.hpp>

#include <benchmark/benchmark.h>

#include <string_view>

namespace {

/// The empty loop, the baseline for the others.
void no_operation(benchmark::State& state) {
  for (auto iteration : state) benchmark::ClobberMemory();
}

void open_literal() { auto scope = memprof::track_operation<"attention">(); }

void open_by_name(std::string_view name) { auto scope = memprof::track_operation(name); }

/// Enter and exit, including the path of the two events into the ledger.
void literal_captured(benchmark::State& state) {
  const auto capture = memprof::begin_capture();
  for (auto iteration : state) {
    open_literal();
    benchmark::ClobberMemory();
  }
}

void by_name_captured(benchmark::State& state) {
  const auto capture = memprof::begin_capture();
  std::string_view name = "attention";
  for (auto iteration : state) {
    benchmark::DoNotOptimize(name);
    open_by_name(name);
    benchmark::ClobberMemory();
  }
}

void literal_idle(benchmark::State& state) {
  for (auto iteration : state) {
    open_literal();
    benchmark::ClobberMemory();
  }
}

BENCHMARK(no_operation)->Name("track_operation/none");
BENCHMARK(literal_captured)->Name("track_operation/literal");
BENCHMARK(by_name_captured)->Name("track_operation/by_name");
BENCHMARK(literal_idle)->Name("track_operation/idle");

}  // namespace
