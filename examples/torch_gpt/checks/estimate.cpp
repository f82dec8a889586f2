// The estimate of a GPT in eager libtorch beside the same training without dispatch: the peaks of the second step are at most 0.1
// % apart, for the estimate leaves out scalars and indexes.
#include <torch_gpt/model.hpp>

#include <memprof/analysis/estimate.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace {

struct setting {
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t d_model;
  std::int64_t vocabulary;
  std::int64_t seq_len;
  std::int64_t batch_size;
};

constexpr setting settings[] = {{12, 12, 768, 256, 512, 4},  {12, 12, 768, 50257, 1024, 2}, {6, 8, 512, 1000, 256, 16},
                                {24, 16, 1024, 256, 128, 4}, {4, 4, 256, 50257, 512, 8},    {48, 25, 1600, 50257, 1024, 1}};

/// The greatest live bytes during the second of two steps, in which the optimizer has its state.
std::int64_t measured_peak(const setting& of) {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cpu"}});
  {
    torch_gpt::decoder model{torch_gpt::model_config{
        .layers = of.layers, .heads = of.heads, .d_model = of.d_model, .seq_len = of.seq_len, .vocabulary = of.vocabulary}};
    torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      memprof::snapshot("ZERO_GRAD");
      const at::Tensor tokens = at::zeros({of.batch_size, of.seq_len}, at::kInt);
      const at::Tensor targets = at::zeros({of.batch_size, of.seq_len}, at::kLong);
      model->forward(tokens, targets).backward();
      optimizer.step();
      memprof::snapshot("STEP");
    }
  }
  capture.end();
  const memprof::space_profile& space = capture.profile().space("cpu");
  // ZERO_GRAD, STEP, ZERO_GRAD, STEP
  return space.segments.at(2).cumulative_current + space.segments.at(3).segment_peak;
}

std::int64_t estimated_peak(const setting& of) {
  const memprof::decoder_model model{.layers = of.layers, .d_model = of.d_model, .heads = of.heads, .vocabulary = of.vocabulary};
  return memprof::estimate_training_step(model, {.batch_size = of.batch_size,
                                                 .seq_len = of.seq_len,
                                                 .attention = memprof::attention_kind::fused,
                                                 .layers = memprof::torch_layers})
      .space()
      .cumulative_peak;
}

}  // namespace

int main() {
  int failures = 0;
  for (const setting& each : settings) {
    const std::int64_t measured = measured_peak(each);
    const std::int64_t estimated = estimated_peak(each);
    const double percent = 100.0 * static_cast<double>(estimated - measured) / static_cast<double>(measured);
    std::printf("L=%lld D=%lld V=%lld T=%lld B=%lld: estimated %lld, without dispatch %lld bytes, %+.3f %%\n",
                static_cast<long long>(each.layers), static_cast<long long>(each.d_model),
                static_cast<long long>(each.vocabulary), static_cast<long long>(each.seq_len),
                static_cast<long long>(each.batch_size), static_cast<long long>(estimated), static_cast<long long>(measured),
                percent);
    failures += std::abs(percent) > 0.1;
  }
  return failures;
}
