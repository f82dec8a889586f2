#include "train_step.hpp"

#include "exit_status.hpp"

#include <memprof/analysis/estimate.hpp>
#include <memprof/core/dtype.hpp>
#include <memprof/core/run_mode.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/estimate_text.hpp>
#include <memprof/report/text_format.hpp>
#include <memprof/report/training_step_text.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <unistd.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {
namespace {

/// What of the step belongs to which stage.
constexpr std::string_view stage_of(std::string_view segment) {
  if (segment == "FORWARD_PASS") return "forward+loss";
  if (segment == "BACKWARD_PASS") return "backward";
  if (segment == "OPTIMIZER_STEP") return "optimizer.step";
  return {};
}

/// With as many positions as a sequence has.
memprof::decoder_model trained_model(memprof::decoder_model model) {
  model.positions = 0;
  return model;
}

/// Bytes that the machine can give without swapping; a step that needs more might end other programs.
std::int64_t available_memory() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  return pages < 0 ? INT64_MAX : pages * ::sysconf(_SC_PAGESIZE);
}

std::string signed_gibibytes(std::int64_t bytes) {
  const std::string number = memprof::detail::decimal(static_cast<double>(bytes) / 0x1p30, 3);
  return memprof::detail::right_aligned((bytes < 0 ? "" : "+") + number, 7);
}

/// The stages of a step, with the columns of the CUDA allocator's counters; memory without such an allocator is not reserved.
std::string stage_table(const memprof::space_profile& space, std::int64_t& greatest) {
  const std::string not_there = memprof::detail::right_aligned("n/a", 7);
  std::vector<std::vector<std::string>> rows{
      {"Stage", "Alloc GiB", "Reserved GiB", "Delta Alloc GiB", "Peak Alloc GiB", "Peak Reserved GiB"}};
  std::int64_t before = 0;
  for (const memprof::segment_usage& usage : space.segments) {
    const std::int64_t peak = before + usage.segment_peak;
    before = usage.cumulative_current;
    const std::string_view stage = stage_of(usage.segment);
    if (stage.empty()) continue;
    greatest = std::max(greatest, peak);
    rows.push_back({std::string{stage}, memprof::detail::gibibytes(usage.cumulative_current), not_there,
                    signed_gibibytes(usage.segment_change), memprof::detail::gibibytes(peak), not_there});
  }
  return memprof::detail::aligned_table(rows);
}

}  // namespace

void train_step_options::add(CLI::App& command) {
  command.add_option("--profile-device", device, "auto, cuda or cpu (auto)")->check(CLI::IsMember({"auto", "cuda", "cpu"}));
  command.add_option("--profile-bf16", bf16, "auto, on or off (auto)")->check(CLI::IsMember({"auto", "on", "off"}));
  command.add_option("--profile-lr", learning_rate, "learning rate (0.001)");
  command.add_option("--profile-seed", seed, "of weights and tokens (42)");
}

void require_train_step(const memprof::decoder_model& model, const train_step_options& options) {
  if (options.device == "cuda") {
    memprof::detail::raise("Requested --profile-device cuda, but CUDA is unavailable: this program runs the step on the CPU");
  }
  (void)nano_gpt::options_for(trained_model(model), {});
}

int run_train_step(const memprof::decoder_shape& shape, const memprof::decoder_model& model, const train_step_options& options) {
  const memprof::decoder_model trained = trained_model(model);
  memprof::training_setup setup{.batch_size = shape.batch_size, .seq_len = shape.seq_len};
  if (options.bf16 == "on") setup.type = memprof::dtype::bfloat16;
  nano_gpt::options step_options = nano_gpt::options_for(trained, setup);
  step_options.seed = options.seed;
  std::printf("\nTrain Step Profile (real allocs)\nDevice=cpu | bf16_autocast=%s | %s\n", options.bf16 == "on" ? "on" : "off",
              memprof::detail::config_text(shape).c_str());

  const std::int64_t needed = memprof::estimate_training_step(trained, setup).space().cumulative_peak;
  const std::int64_t available = available_memory();
  if (needed > available) {
    std::printf("\nOOM during train-step profile: the step needs %s, and %s are available\n",
                memprof::detail::gibibytes_text(needed).c_str(), memprof::detail::gibibytes_text(available).c_str());
    return success;
  }

  std::fflush(stdout);
  const nano_gpt::measured_step step = nano_gpt::measure_one_step(step_options, options.learning_rate);
  std::int64_t greatest = 0;
  const memprof::space_profile* const space = step.profile.find_space("cpu");
  const std::string table = stage_table(space == nullptr ? memprof::space_profile{} : *space, greatest);
  if (step.ran_out_of_memory) {
    std::printf("\nOOM during train-step profile: the system has no more memory\nStages completed before OOM:\n%s",
                table.c_str());
    return success;
  }
  std::printf("\n%s\nMax stage peak allocated: %s\n", table.c_str(), memprof::detail::gibibytes_text(greatest).c_str());
  return success;
}

}  // namespace memprof_tool
