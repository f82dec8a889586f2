// A step of GPT-2 124M under NO_DISPATCH takes no more than 120 MB of physical memory, besides that of libtorch's own files, of
// which the system maps more or less. A process of its own, as the greatest amount that a process had can be asked for but not
// set back.
//
// torch_gpt2_step [real [BATCH]]: compares the time with that of the real step, which needs some 1.5 GB and 2.5 GB for each
// sequence of the batch.

#include "../models.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace {

constexpr std::int64_t greatest_resident_bytes = 120'000'000;

/// The greatest physical memory that this process had until now.
std::int64_t greatest_resident() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::int64_t>(used.ru_maxrss) * 1024;
}

/// The physical memory of mapped files at present.
std::int64_t resident_files() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssFile:", 0) == 0) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

models::options gpt2(std::int64_t batch) {
  return {.layers = 12,
          .width = 768,
          .heads = 12,
          .vocabulary = 50257,
          .context = 1024,
          .batch = batch,
          .fused_attention = true,
          .tied_head = true};
}

/// Seconds of the second of two steps: the first also makes the model, the optimizer's state and what libtorch keeps.
double seconds_of_a_step(std::int64_t batch) {
  using clock = std::chrono::steady_clock;
  const models::options chosen = gpt2(batch);
  clock::time_point first_ends;
  clock::time_point last_ends;
  models::train(models::gpt(chosen), chosen, {.steps = 2}, [&](std::string_view phase) {
    if (phase != "OPTIMIZER_STEP") return;
    first_ends = last_ends;
    last_ends = clock::now();
  });
  return std::chrono::duration<double>(last_ends - first_ends).count();
}

}  // namespace

int main(int count, char** arguments) {
  const bool runs_real = count > 1 && std::string_view{arguments[1]} == "real";
  const std::int64_t batch = runs_real && count > 2 ? std::atoll(arguments[2]) : 8;
  if (batch < 1 || (count > 1 && !runs_real)) {
    std::fprintf(stderr, "usage: %s [real [BATCH]]\n", arguments[0]);
    return 2;
  }

  const std::int64_t files = resident_files();  // later there are more, so that what remains is no less than it was
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cpu"}});
  const double simulated = seconds_of_a_step(batch);
  capture.end();
  const std::int64_t resident = greatest_resident() - files;
  std::printf(
      "GPT-2 124M, float32, batch %lld x 1024: a simulated step takes %.3f s, the process %.1f MB; simulated peak %.1f MB\n",
      static_cast<long long>(batch), simulated, static_cast<double>(resident) / 1e6,
      static_cast<double>(capture.profile().space("cpu").cumulative_peak) / 1e6);
  if (runs_real) {
    const double real = seconds_of_a_step(batch);
    std::printf("a real step takes %.3f s, %.0f times as long\n", real, real / simulated);
  }
  if (resident > greatest_resident_bytes) {
    std::printf("fault: more than %.0f MB\n", static_cast<double>(greatest_resident_bytes) / 1e6);
    return 1;
  }
  return 0;
}
