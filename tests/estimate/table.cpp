// The table of docs/estimate.md: the estimated peak of training steps beside that of examples/nano_gpt without dispatch. Fails if
// one of them is off by more than 2 %.
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/trace/run_mode.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

struct setting {
  std::string_view model;
  std::int64_t batch_size;
  std::int64_t seq_len;
};

constexpr std::array<setting, 12> settings{{{"gpt2-124m", 1, 1024},
                                            {"gpt2-124m", 16, 1024},
                                            {"gpt2-124m", 8, 256},
                                            {"gpt2-1.5b", 1, 1024},
                                            {"gpt2-1.5b", 8, 512},
                                            {"gpt2-1.5b", 4, 1024},
                                            {"tinyllama-1.1b", 1, 2048},
                                            {"tinyllama-1.1b", 4, 2048},
                                            {"tinyllama-1.1b", 16, 512},
                                            {"llama-7b", 1, 4096},
                                            {"llama-7b", 4, 2048},
                                            {"llama-7b", 1, 512}}};

std::int64_t measured_peak(const memprof::decoder_model& model, const memprof::training_setup& setup) {
  nano_gpt::options options = nano_gpt::options_for(model, setup);
  options.mode = memprof::run_mode::no_dispatch;
  return nano_gpt::measure_one_step(options, 1e-3).profile.space("cpu").cumulative_peak;
}

}  // namespace

int main() {
  constexpr double max_percent = 2;
  int failures = 0;
  std::puts("| model | batch × sequence | blocks | estimated peak, bytes | without dispatch, bytes | difference |");
  std::puts("|---|---|---|---|---|---|");
  for (const setting& each : settings) {
    const memprof::decoder_model& model = memprof::find_decoder(each.model).model;
    for (const auto recompute : {memprof::recomputation_kind::off, memprof::recomputation_kind::blocks}) {
      const memprof::training_setup setup{
          .batch_size = each.batch_size, .seq_len = each.seq_len, .type = memprof::dtype::bfloat16, .recompute = recompute};
      const std::int64_t estimated = memprof::estimate_training_step(model, setup).space().cumulative_peak;
      const std::int64_t measured = measured_peak(model, setup);
      const double difference = 100.0 * static_cast<double>(estimated - measured) / static_cast<double>(measured);
      failures += std::abs(difference) > max_percent;
      std::printf("| %s | %lld × %lld | %s | %s | %s | %s %% |\n", std::string{each.model}.c_str(),
                  static_cast<long long>(each.batch_size), static_cast<long long>(each.seq_len),
                  recompute == memprof::recomputation_kind::off ? "kept" : "recomputed",
                  memprof::detail::with_thousands(std::to_string(estimated)).c_str(),
                  memprof::detail::with_thousands(std::to_string(measured)).c_str(),
                  memprof::detail::decimal(difference, 3).c_str());
    }
  }
  return failures;
}
