#pragma once

#include "result.hpp"

#include <array>
#include <string_view>

/// @file
/// The measurements, in groups that can be selected by name. Each adds its rows to the report, and a line to `skipped` for
/// anything it cannot measure on this machine.

namespace bench {

/// Threads that allocate and free as fast as they can: without memprof, and with it compiled out, idle, and capturing.
void measure_pairs(const plan& plan, report& report);
/// The profiler's own memory over 100 million events.
void measure_memory(const plan& plan, report& report);
/// Individual operations, snapshots and the ledger, by Google Benchmark.
void measure_parts(const plan& plan, report& report);
/// examples/nano_gpt with and without memprof.
void measure_nano_gpt(const plan& plan, report& report);
/// What a trace file costs a capture, how large it grows, and how fast it is read.
void measure_trace_file(const plan& plan, report& report);
/// What headers and units that use them cost to compile.
void measure_include(const plan& plan, report& report);
/// malloc.hpp and `memprof run`, on that program and on a compilation.
void measure_heap(const plan& plan, report& report);
/// Operators and a training step of libtorch, by the program torch_bench.
void measure_torch(const plan& plan, report& report);
/// Other profilers on the same program.
void measure_peers(const plan& plan, report& report);

struct group {
  std::string_view name;
  void (*measure)(const plan&, report&);
};

inline constexpr std::array<group, 9> groups{{
    {"pairs", measure_pairs},
    {"memory", measure_memory},
    {"parts", measure_parts},
    {"nano_gpt", measure_nano_gpt},
    {"trace_file", measure_trace_file},
    {"include", measure_include},
    {"heap", measure_heap},
    {"torch", measure_torch},
    {"peers", measure_peers},
}};

}  // namespace bench
