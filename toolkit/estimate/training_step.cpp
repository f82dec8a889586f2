#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_model.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Runs micro-batches forward and backward alternately, after as many forward passes as later stages need to start theirs
/// (one-forward-one-backward).
void run_micro_batches(const step_plan& plan, step_stage& stage, std::int64_t number_of_stage) {
  const std::int64_t count = plan.setup.micro_batches;
  const std::int64_t ahead = std::min(count, plan.setup.parallel.pipeline - number_of_stage);
  std::vector<step_stage::kept> under_way(static_cast<std::size_t>(ahead));
  std::int64_t begun = 0;
  const auto forward = [&] {
    step_stage::kept& saved = under_way[static_cast<std::size_t>(begun++ % ahead)];
    stage.make_batch(plan, saved);
    stage.forward(plan, saved);
    plan.recorder.end_segment("FORWARD_PASS");
  };
  while (begun < ahead) forward();
  for (std::int64_t ended = 0; ended < count; ++ended) {
    stage.backward(plan, under_way[static_cast<std::size_t>(ended % ahead)]);
    plan.recorder.end_segment("BACKWARD_PASS");
    if (begun < count) forward();
  }
  stage.step(plan);
  plan.recorder.end_segment("OPTIMIZER_STEP");
}

profile estimate_stage(const decoder_model& model, const training_setup& setup, std::int64_t number,
                       allocation_sequence* sequence, trace* recorded) {
  const bool has_device = !setup.device.empty();
  capture_info info;
  info.library_version = version_string;
  info.mode = run_mode::no_dispatch;
  info.device = setup.device.name.view();
  step_recorder recorder{has_device ? setup.device.tensor_space().name.view() : "cpu",
                         has_device ? setup.device.tensor_space().capacity : 0, info, sequence, recorded};
  const step_plan plan{model, setup, recorder};
  profile result;
  {
    step_stage stage{plan, number};
    recorder.end_segment("MODEL_CREATION");
    stage.make_optimizer(plan);
    recorder.end_segment("OPTIMIZER_CREATION");
    run_micro_batches(plan, stage, number);
    recorder.end_segment("END_TRACE");
    result = recorder.finish();
  }
  return result;
}

}  // namespace
}  // namespace detail

training_estimate estimate_training_step(const decoder_model& model, const training_setup& setup, allocation_sequence* sequence,
                                         trace* recorded) {
  detail::check(model, setup);
  training_estimate result;
  result.parameters = parameter_count(model, setup.seq_len);
  if (setup.pipeline_stage >= 0 || setup.parallel.pipeline == 1) {
    result.pipeline_stage = std::max<std::int64_t>(setup.pipeline_stage, 0);
    result.step = detail::estimate_stage(model, setup, result.pipeline_stage, sequence, recorded);
    return result;
  }
  if (sequence != nullptr || recorded != nullptr) detail::raise("recording the events of a pipeline requires pipeline_stage");
  for (std::int64_t stage = 0; stage < setup.parallel.pipeline; ++stage) {
    profile step = detail::estimate_stage(model, setup, stage, nullptr, nullptr);
    if (stage > 0 && step.spaces.front().cumulative_peak <= result.space().cumulative_peak) continue;
    result.step = std::move(step);
    result.pipeline_stage = stage;
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
