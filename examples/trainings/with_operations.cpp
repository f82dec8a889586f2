// The training with an operation around each phase. Prints how much of what was allocated has one; with a second word, threads
// without an operation work for that of the leader (capture_options::infer_operations).
#include "training.hpp"

#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

double per_cent(std::int64_t part, std::int64_t whole) { return 100 * static_cast<double>(part) / static_cast<double>(whole); }

void print_shares(const memprof::profile& profile) {
  const std::int64_t allocated = profile.space("cpu").allocations;
  std::int64_t with_operation = 0;
  for (const memprof::operation_profile& each : profile.operations)
    for (const memprof::operation_usage& used : each.usage) {
      with_operation += used.self_allocated;
      std::printf("%-10s %5.1f %% of %lld bytes, peak %lld\n", each.path.c_str(), per_cent(used.self_allocated, allocated),
                  static_cast<long long>(allocated), static_cast<long long>(used.peak));
    }
  std::printf("%-10s %5.1f %%\n", "together", per_cent(with_operation, allocated));
}

}  // namespace

int main(int count, char** words) {
  auto capture = memprof::begin_capture({.infer_operations = count > 2});
  for (const phase& each : training(count > 1 ? std::atof(words[1]) : 1)) {
    auto scope = memprof::track_operation(each.name);
    each.run();
  }
  capture.end();
  print_shares(capture.profile());
}
