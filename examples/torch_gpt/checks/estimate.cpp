// Compares the estimate of a GPT in eager libtorch with the same training without dispatch: the peaks of the second step differ
// by at most 0.1 %, because the estimate omits scalars and indices. Also compares a small model with both and with real training,
// where every byte of the difference has a name.
#include <torch_gpt/model.hpp>

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/trace/trace.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

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

/// Two steps as most people write them.
void train(const setting& of) {
  torch_gpt::decoder model{torch_gpt::model_config{
      .layers = of.layers, .heads = of.heads, .d_model = of.d_model, .seq_len = of.seq_len, .vocabulary = of.vocabulary}};
  memprof::annotate_module(model);
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
  const auto states = memprof::annotate_optimizer(optimizer);
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

/// The peak of live bytes during the second of two steps, when the optimizer already has its state.
std::int64_t measured_peak(const setting& of) {
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cpu"}});
  train(of);
  capture.end();
  const memprof::space_profile& space = capture.profile().space("cpu");
  // ZERO_GRAD, STEP, ZERO_GRAD, STEP
  return space.segments.at(2).cumulative_current + space.segments.at(3).segment_peak;
}

memprof::training_estimate estimate(const setting& of, memprof::trace* events) {
  const memprof::decoder_model model{.layers = of.layers, .d_model = of.d_model, .heads = of.heads, .vocabulary = of.vocabulary};
  return memprof::estimate_training_step(model,
                                         {.batch_size = of.batch_size,
                                          .seq_len = of.seq_len,
                                          .attention = memprof::attention_kind::fused,
                                          .layers = memprof::torch_layers},
                                         nullptr, events);
}

template <class Backend>
memprof::compared_run column_of_run(const char* title, const setting& of) {
  memprof::trace events;
  memprof::capture_options options;
  options.device.name = "cpu";
  options.trace = &events;
  auto capture = memprof::begin_capture<Backend>(options);
  train(of);
  capture.end();
  const memprof::profile run = capture.profile();
  return compared_run_of(title, run, run.space("cpu"), stack_table_of(events, true));
}

/// The faults in the waterfall of a small model, one per line.
int count_waterfall_faults() {
  constexpr setting small{2, 4, 64, 256, 64, 8};
  memprof::trace events;
  const memprof::training_estimate estimated = estimate(small, &events);
  std::vector<memprof::compared_run> columns;
  columns.push_back(compared_run_of("estimate", estimated.step, estimated.space(), stack_table_of(events, true)));
  columns.push_back(column_of_run<memprof::torch_no_dispatch>("no dispatch", small));
  columns.push_back(column_of_run<memprof::torch_backend>("measured", small));
  const memprof::waterfall waterfall = make_waterfall(std::move(columns));
  std::fputs(to_text(waterfall).c_str(), stdout);

  int faults = 0;
  const auto require = [&](bool condition, const std::string& what) {
    if (condition) return;
    std::printf("FAULT: %s\n", what.c_str());
    ++faults;
  };
  std::vector<std::int64_t> sums(waterfall.columns.size());
  int layers = 0;
  for (const memprof::waterfall_part& part : waterfall.parts) {
    for (const memprof::waterfall_row& row : part.rows) {
      for (std::size_t column = 0; column < sums.size(); ++column) sums[column] += row.bytes[column];
    }
    require(memprof::change_at(part.bytes, 2) == 0, part.name + " differs between simulation and run");
    for (const char* const known : {"parameters", "optimizer state", "attention", "mlp", "norms and residuals"}) {
      if (part.name != known) continue;
      ++layers;
      require(memprof::change_at(part.bytes, 1) == 0, part.name + " is not as estimated");
    }
  }
  require(layers == 5, "a part of the model is missing");
  for (std::size_t column = 0; column < sums.size(); ++column)
    require(sums[column] == waterfall.columns[column].bytes, "the operations do not sum to the peak");
  return faults;
}

}  // namespace

int main() {
  int failures = 0;
  for (const setting& each : settings) {
    const std::int64_t measured = measured_peak(each);
    const std::int64_t estimated = estimate(each, nullptr).space().cumulative_peak;
    const double percent = 100.0 * static_cast<double>(estimated - measured) / static_cast<double>(measured);
    std::printf("L=%lld D=%lld V=%lld T=%lld B=%lld: estimated %lld, without dispatch %lld bytes, %+.3f %%\n",
                static_cast<long long>(each.layers), static_cast<long long>(each.d_model),
                static_cast<long long>(each.vocabulary), static_cast<long long>(each.seq_len),
                static_cast<long long>(each.batch_size), static_cast<long long>(estimated), static_cast<long long>(measured),
                percent);
    failures += std::abs(percent) > 0.1;
  }
  return failures + count_waterfall_faults();
}
