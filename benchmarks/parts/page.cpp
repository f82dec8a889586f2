#include "clock.hpp"

#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace {

/// Ten million events in 100,000 steps: in each step, 16 layers allocate two blocks each, which are freed in reverse order.
memprof::trace record_training() {
  constexpr std::size_t steps = 100'000;
  constexpr std::size_t layers = 16;
  memprof::trace recorded;
  memprof::extend::trace_writer writer{recorded};
  const memprof::extend::space_id space = writer.space("cuda:0", std::int64_t{16} << 30);
  const std::uint64_t first = std::uint64_t{0x7f} << 40;
  std::int64_t now = 0;
  std::uint32_t noise = 1;
  const auto tick = [&] {
    noise = noise * 1664525U + 1013904223U;
    writer.at(now += 200 + (noise >> 22));
  };
  for (std::size_t step = 0; step < steps; ++step) {
    std::uint64_t next = first;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      tick();
      const auto scope = writer.begin_operation("layer " + std::to_string(layer), memprof::category::activation);
      for (std::size_t block = 0; block < 2; ++block) {
        tick();
        writer.allocate(space, next, (1 << 20) + (layer << 10) + 512 * block);
        next += 1 << 21;
      }
      tick();
      writer.end_operation(scope);
    }
    writer.end_segment("FORWARD_PASS");
    while (next != first) {
      tick();
      writer.deallocate(space, next -= 1 << 21);
    }
    writer.end_segment("BACKWARD_PASS");
    tick();
    writer.end_segment("OPTIMIZER_STEP");
  }
  writer.finish();
  return recorded;
}

/// A line of /proc/self/status, in MB; 0 if there is none.
double status_mb(const std::string& key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    double kb = 0;
    if (word == key + ":" && status >> kb) return kb / 1024;
  }
  return 0;
}

void page(benchmark::State& state) {
  const memprof::trace recorded = record_training();
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "memprof_bench_page.html";
  for (auto iteration : state) {
    std::ofstream{"/proc/self/clear_refs"} << "5";  // resets VmHWM
    const double memory = status_mb("VmRSS");
    const double begin = thread_seconds();
    memprof::write_html(recorded, path);
    state.SetIterationTime(thread_seconds() - begin);
    state.counters["memory_mb"] = status_mb("VmHWM") - memory;
    state.counters["page_mb"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * recorded.size()));
}

BENCHMARK(page)->Name("page")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
