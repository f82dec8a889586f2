// The program with memprof: idle, or recording with --capture. Compiled a second time with MEMPROF_ENABLED=0, and a third time
// with all of malloc's family recorded.
#include "workload.hpp"

#ifdef BENCH_MALLOC
#include <memprof/backend/malloc.hpp>
#else
#include <memprof/backend/new_delete.hpp>
#endif
#include <memprof/memprof.hpp>

#include <cstdint>
#include <cstdio>

namespace {

struct tracked_operations {
  static auto open(std::uint64_t turn) {
    switch (turn % 8) {
      case 0: return memprof::track_operation<"embedding">();
      case 1: return memprof::track_operation<"layer_norm">();
      case 2: return memprof::track_operation<"attention">();
      case 3: return memprof::track_operation<"softmax">();
      case 4: return memprof::track_operation<"feed_forward">();
      case 5: return memprof::track_operation<"activation">();
      case 6: return memprof::track_operation<"head">();
      default: return memprof::track_operation<"loss">();
    }
  }
};

double run_captured(const pairs::options& options) {
  auto capture = memprof::begin_capture({.trace_file = options.trace_file});
  const double waited = pairs::run<tracked_operations>(options);
  capture.end();
  return waited;
}

}  // namespace

int main(int count, char** arguments) {
  const pairs::options options = pairs::parse(count, arguments);
  const pairs::stopwatch watch;
  const double waited = options.capture ? run_captured(options) : pairs::run<tracked_operations>(options);
  const pairs::cost spent = watch.read(waited);

  const memprof::profile profile = memprof::current_profile();
  std::printf(
      "{\"events\": %llu, \"cpu_ns\": %.0f, \"wall_ns\": %.0f, \"waited_ns\": %.0f, \"recorded\": %lld, \"memory_bytes\": %lld, "
      "\"memory_bytes_at_million\": %lld}\n",
      static_cast<unsigned long long>(pairs::events(options)), spent.cpu, spent.wall, spent.waited,
      static_cast<long long>(profile.cost.events), static_cast<long long>(profile.cost.memory_bytes),
      static_cast<long long>(profile.cost.memory_bytes_at_million_events));
}
