#include "train_step.hpp"

#include "exit_status.hpp"
#include "option_values.hpp"
#include "progress.hpp"
#include "text_output.hpp"
#if MEMPROF_TOOL_TORCH
#include "torch_step.hpp"
#endif

#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/container_limit.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/available_memory.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/run_mode.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

/// The stage that a segment of the step belongs to.
constexpr std::string_view stage_of(std::string_view segment) {
  if (segment == "FORWARD_PASS") return "forward+loss";
  if (segment == "BACKWARD_PASS") return "backward";
  if (segment == "OPTIMIZER_STEP") return "optimizer.step";
  return {};
}

/// The model with exactly as many positions as a sequence has tokens.
memprof::decoder_model trained_model(memprof::decoder_model model) {
  model.positions = 0;
  return model;
}

std::string signed_gibibytes(std::int64_t bytes) {
  const std::string number = memprof::detail::decimal(static_cast<double>(bytes) / 0x1p30, 3);
  return memprof::detail::right_aligned((bytes < 0 ? "" : "+") + number, 7);
}

/// Live and reserved bytes of the space that holds a step's tensors, in the columns of PyTorch's counters.
struct stage_rows {
  std::vector<std::vector<std::string>> rows{
      {"Stage", "Alloc GiB", "Reserved GiB", "Delta Alloc GiB", "Peak Alloc GiB", "Peak Reserved GiB"}};
  std::int64_t peak = 0;
  std::int64_t reserved_peak = -1;  ///< -1: the space has no caching allocator
};

stage_rows stages_of(const memprof::space_profile& space) {
  stage_rows result;
  const bool is_reserved = !space.reserved.segments.empty();
  const auto reserved_text = [&](std::int64_t bytes) {
    return is_reserved ? memprof::detail::gibibytes(bytes) : memprof::detail::right_aligned("n/a", 7);
  };
  std::int64_t before = 0;
  for (std::size_t index = 0; index < space.segments.size(); ++index) {
    const memprof::segment_usage& usage = space.segments[index];
    const memprof::reserved_usage reserved = is_reserved ? space.reserved.segments[index] : memprof::reserved_usage{};
    const std::int64_t peak = before + usage.segment_peak;
    before = usage.cumulative_current;
    const std::string_view stage = stage_of(usage.segment);
    if (stage.empty()) continue;
    result.peak = std::max(result.peak, peak);
    if (is_reserved) result.reserved_peak = std::max(result.reserved_peak, reserved.peak);
    result.rows.push_back({std::string{stage}, memprof::detail::gibibytes(usage.cumulative_current),
                           reserved_text(reserved.current), signed_gibibytes(usage.segment_change),
                           memprof::detail::gibibytes(peak), reserved_text(reserved.peak)});
  }
  return result;
}

void print_stages(const memprof::profile& profile, std::string_view space_name, bool ran_out_of_memory) {
  const memprof::space_profile* const space = profile.find_space(space_name);
  const stage_rows stages = stages_of(space == nullptr ? memprof::space_profile{} : *space);
  const std::string table = memprof::detail::aligned_table(stages.rows);
  if (ran_out_of_memory) {
    print("\nOOM during train-step profile: out of memory in " + std::string{space_name} + "\nStages completed before OOM:\n" +
          table);
    return;
  }
  print("\n" + table + "\nMax stage peak allocated: " + memprof::detail::gibibytes_text(stages.peak) + "\n");
  if (stages.reserved_peak >= 0) {
    print("Max stage peak reserved: " + memprof::detail::gibibytes_text(stages.reserved_peak) + "\n");
  }
}

/// What runs the step: libtorch if this program has it and examples/torch_gpt has such a model, else the plain trainer.
struct chosen_trainer {
  bool is_torch = false;
  bool on_cuda = false;
  bool bf16 = false;
};

chosen_trainer choose_trainer(const memprof::decoder_model& model, const train_step_options& options) {
  chosen_trainer chosen;
#if MEMPROF_TOOL_TORCH
  chosen.is_torch = !model.is_llama() && !model.tied_output && model.mlp_width == 0 && model.experts == 0;
  chosen.on_cuda = chosen.is_torch && options.device != "cpu" && has_torch_cuda();
  // As in the original, autocast is for the GPU unless requested explicitly.
  const bool wants_bf16 = options.bf16 == "on" || (options.bf16 == "auto" && chosen.on_cuda);
  chosen.bf16 = wants_bf16 && (!chosen.is_torch || has_torch_bf16(chosen.on_cuda));
#else
  (void)model;
  chosen.bf16 = options.bf16 == "on";
#endif
  return chosen;
}

}  // namespace

void train_step_options::add(CLI::App& command) {
  command.add_option("--profile-device", device, "device for --train-step-profile: auto, cuda or cpu (default: auto)")
      ->type_name("DEVICE")
      ->check(one_of("device", {"auto", "cuda", "cpu"}));
  command.add_option("--profile-bf16", bf16, "autocast to bf16: auto, on or off (default: auto)")
      ->type_name("WHEN")
      ->check(one_of("value", {"auto", "on", "off"}));
  command.add_option("--profile-lr", learning_rate, "learning rate (default: 0.001)")->check(decimal_number());
  command.add_option("--profile-seed", seed, "seed for weights and tokens (default: 42)")->check(whole_number(0));
}

void require_memory(std::int64_t needed) {
  const std::int64_t available = memprof::detail::available_memory(memprof::detail::container_limit());
  if (needed <= available) return;
  memprof::detail::raise("the step needs " + memprof::detail::gibibytes_text(needed) + ", but only " +
                         memprof::detail::gibibytes_text(available) + " is available");
}

void require_train_step(const memprof::decoder_model& model, const train_step_options& options) {
  if (!(options.learning_rate >= 0) || std::isinf(options.learning_rate)) {
    memprof::detail::raise("--profile-lr is " + memprof::detail::decimal(options.learning_rate, 0) +
                           ", but must be finite and not negative");
  }
  const chosen_trainer trainer = choose_trainer(model, options);
  if (options.device == "cuda" && !trainer.on_cuda) {
    memprof::detail::raise("Requested --profile-device cuda, but CUDA is unavailable: this program runs the step on the CPU");
  }
  if (!trainer.is_torch) (void)nano_gpt::options_for(trained_model(model), {});
}

int run_train_step(const memprof::decoder_shape& shape, const memprof::decoder_model& model, const train_step_options& options) {
  const chosen_trainer trainer = choose_trainer(model, options);
  const memprof::decoder_model trained = trained_model(model);
  memprof::training_setup setup{.batch_size = shape.batch_size, .seq_len = shape.seq_len};
  if (trainer.bf16 && !trainer.is_torch) setup.type = memprof::dtype::bfloat16;
  print(std::string{"\nTrain Step Profile (real allocs)\nDevice="} + (trainer.on_cuda ? "cuda" : "cpu") +
        " | bf16_autocast=" + (trainer.bf16 ? "on" : "off") + " | " + memprof::detail::config_text(shape) + "\n");

  // Linux might grant memory that it does not have, and kill programs later.
  const std::int64_t needed = memprof::estimate_training_step(trained, setup).space().cumulative_peak;
  const std::int64_t available = memprof::detail::available_memory(memprof::detail::container_limit());
  if (!trainer.on_cuda && needed > available) {
    print("\nOOM during train-step profile: the step needs " + memprof::detail::gibibytes_text(needed) + ", but only " +
          memprof::detail::gibibytes_text(available) + " is available\n");
    return success;
  }

  std::fflush(stdout);
#if MEMPROF_TOOL_TORCH
  if (trainer.is_torch) {
    std::optional<progress> shown{std::in_place, "memprof: running one step"};
    const measured_torch_step step = measure_torch_step({.batch_size = shape.batch_size,
                                                         .seq_len = shape.seq_len,
                                                         .d_model = model.d_model,
                                                         .heads = model.heads,
                                                         .layers = model.layers,
                                                         .vocabulary = model.vocabulary,
                                                         .learning_rate = options.learning_rate,
                                                         .seed = options.seed,
                                                         .on_cuda = trainer.on_cuda,
                                                         .bf16 = trainer.bf16});
    shown.reset();
    print_stages(step.profile, trainer.on_cuda ? "cuda:0" : "cpu", step.ran_out_of_memory);
    return success;
  }
#endif
  nano_gpt::options step_options = nano_gpt::options_for(trained, setup);
  step_options.seed = options.seed;
  std::optional<progress> shown{std::in_place, "memprof: running one step"};
  const nano_gpt::measured_step step = nano_gpt::measure_one_step(step_options, options.learning_rate);
  shown.reset();
  print_stages(step.profile, "cpu", step.ran_out_of_memory);
  return success;
}

}  // namespace memprof_tool
