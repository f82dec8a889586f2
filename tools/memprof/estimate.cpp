#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "picture_file.hpp"
#include "text_output.hpp"
#include "train_step.hpp"
#include "training_options.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/estimate/estimate_answer_json.hpp>
#include <memprof/toolkit/estimate/estimate_json.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/training_step_json.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>
#include <memprof/toolkit/page/estimate_picture.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof_tool {
namespace {

struct estimate_arguments {
  decoder_options decoder;
  setup_options training;
  train_step_options real_step;
  std::int64_t top_k = 12;
  std::string plot_folder;
  std::string json;
  std::string profile;
  std::string trace;
  bool estimates_step = false;
  bool is_compatible = false;  ///< transformer-room's table for any decoder
  bool runs_step = false;
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
};

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  if (!folder.empty()) std::filesystem::create_directories(folder, failure);
  if (failure) memprof::detail::raise_about_file("create", folder, failure.message());
}

/// Whether the standard output is for one of the files alone.
bool prints_a_file(const estimate_arguments& arguments) {
  return is_printed({arguments.json, arguments.profile, arguments.trace}, arguments.as_json     ? "--json"
                                                                          : arguments.runs_step ? "--train-step-profile"
                                                                                                : "");
}

/// Without gnuplot, says so and succeeds.
int draw_both(const memprof::shape_estimate& estimate, const estimate_arguments& arguments) {
  const std::filesystem::path folder = arguments.plot_folder;
  make_folder(folder);
  const drawing buckets = draw_picture([&](const std::string& file) { return memprof::bucket_picture_script(estimate, file); },
                                       (folder / memprof::bucket_picture_name).string());
  if (!buckets.has_gnuplot) {
    print("Skipping PNG plots: gnuplot is not installed. Install with `apt-get install gnuplot-nox`.\n",
          prints_a_file(arguments) ? stderr : stdout);
    return success;
  }
  const drawing contributors = draw_picture(
      [&](const std::string& file) {
        return memprof::contributors_picture_script(estimate, static_cast<std::size_t>(arguments.top_k), file);
      },
      (folder / memprof::contributors_picture_name).string());
  const std::string& complaint = buckets.complaint.empty() ? contributors.complaint : buckets.complaint;
  if (!complaint.empty()) {
    print_error("estimate", "no pictures: gnuplot failed: " + complaint);
    return failed;
  }
  print("\nSaved plots to: " + arguments.plot_folder + "\n", prints_a_file(arguments) ? stderr : stdout);
  return success;
}

int write_summary(const memprof::shape_estimate& estimate, const std::optional<memprof::training_estimate>& step,
                  const estimate_arguments& arguments) {
  const std::string& path = arguments.json;
  nlohmann::ordered_json document = memprof::to_json(estimate);
  if (step) document.emplace("training_step", memprof::to_json(*step));
  make_folder(std::filesystem::path{path}.parent_path());
  write_output(path, document.dump(2));
  if (!arguments.as_json && !prints_a_file(arguments)) print("Saved JSON summary to: " + path + "\n");
  return success;
}

constexpr file_kind estimate_kind{"an estimate",
                                  [](std::string_view begin) { return begin.find("\"bucket_totals\"") != begin.npos; }};

/// Throws `memprof::error` if an output would replace another file than one of its kind.
void check_outputs(const estimate_arguments& arguments) {
  (void)prints_a_file(arguments);
  keep_apart(arguments.json, arguments.profile);
  keep_apart(arguments.json, arguments.trace);
  keep_apart(arguments.profile, arguments.trace);
  keep_terminal(arguments.trace, "a trace");
  if (!arguments.json.empty()) keep_other_file(arguments.json, estimate_kind);
  if (!arguments.profile.empty()) keep_other_file(arguments.profile, profile_file_kind);
  if (!arguments.trace.empty()) keep_other_file(arguments.trace, trace_file_kind);
}

int run_estimate(estimate_arguments& arguments, const CLI::App& command) {
  int status = success;
  check_outputs(arguments);
  const chosen_decoder decoder = choose_decoder(arguments.decoder, command);
  const memprof::shape_estimate estimate =
      decoder.has_architecture && !arguments.is_compatible
          ? memprof::estimate_forward(decoder.model, decoder.shape.batch_size, decoder.shape.seq_len)
          : memprof::estimate_shape(decoder.shape);
  if (arguments.runs_step) require_train_step(decoder.model, arguments.real_step);
  std::optional<memprof::training_estimate> step;
  std::optional<memprof::predicted_fit> room;
  memprof::trace events;
  memprof::training_setup& setup = arguments.training.setup;
  if (arguments.estimates_step) {
    setup.batch_size = decoder.shape.batch_size;
    setup.seq_len = decoder.shape.seq_len;
    if (!arguments.training.device.empty()) setup.device = device_of(arguments.training.device);
    step = arguments.trace.empty() ? memprof::estimate_training_step(decoder.model, setup)
                                   : estimate_with_trace(decoder.model, setup, events);
    const bool is_limited = memprof::has_caching_allocator(setup.device) && setup.device.tensor_space().capacity != 0;
    if (is_limited) room = memprof::predict_step(decoder.model, setup);
  }

  if (prints_a_file(arguments)) {  // see below
  } else if (arguments.as_json) {
    const nlohmann::ordered_json answer =
        memprof::estimate_answer_json(estimate, step ? &*step : nullptr, room ? &*room : nullptr);
    print_json(memprof::detail::dump(memprof::short_answer(answer)) + '\n');
  } else {
    // Elsewhere the text is the original's.
    const std::size_t columns = arguments.width != 0 ? arguments.width : memprof::detail::terminal_columns(stdout);
    if (step) print(memprof::to_text(*step, decoder.model, setup, room ? &*room : nullptr, columns) + "\n");
    print(memprof::to_text(estimate, static_cast<std::size_t>(arguments.top_k), columns));
  }
  if (!arguments.plot_folder.empty()) attempt(status, "estimate", [&] { return draw_both(estimate, arguments); });
  if (!arguments.json.empty()) attempt(status, "estimate", [&] { return write_summary(estimate, step, arguments); });
  if (step && !arguments.profile.empty()) {
    attempt(status, "estimate", [&] {
      write_named_output(arguments.profile, [&](const std::filesystem::path& name) { memprof::write_json(step->step, name); });
      return success;
    });
  }
  if (step && !arguments.trace.empty()) {
    attempt(status, "estimate", [&] {
      write_named_output(arguments.trace, [&](const std::filesystem::path& name) { memprof::write_trace(events, name); });
      return success;
    });
  }
  if (arguments.runs_step)
    attempt(status, "estimate", [&] { return run_train_step(decoder.shape, decoder.model, arguments.real_step); });
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    print_error("estimate", "cannot write the tables: " + memprof::detail::reason_in_errno());
    return bad_input;
  }
  return status;
}

}  // namespace

void add_estimate(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<estimate_arguments>();
  CLI::App& command = *program.add_subcommand("estimate", "estimate the memory of a decoder from its dimensions alone");
  set_footer(command,
             "Without --step, estimates what a forward pass keeps: of a published decoder as its architecture has it, of "
             "dimensions and run_config.json as transformer-room's estimator counts. GiB is 2^30 bytes. Option names also work "
             "with underscores: --batch_size.",
             "gnuplot failed", bad_file_text);
  arguments->decoder.add(command);
  command.add_flag("--transformer-room", arguments->is_compatible,
                   "count a published decoder as transformer-room's estimator does, too: as if it were built like its own");
  command.add_option("--top-k", arguments->top_k, "number of operations in the table and the picture (default: 12)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000));
  CLI::Option* const pictures =
      command.add_option("--plot-dir", arguments->plot_folder, "write two PNG pictures to this folder (needs gnuplot)")
          ->type_name("FOLDER");
  CLI::Option* const as_json =
      command.add_flag("--json", arguments->as_json, "print the estimate as JSON: the verdict, the numbers and their caveats")
          ->excludes(pictures);
  command.add_option("--json-out", arguments->json, "also write the numbers to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, else any)")
      ->type_name("N")
      ->check(whole_number(60, 1000));

  CLI::Option* const step = command.add_flag("--step", arguments->estimates_step, "estimate a whole training step, by phase");
  const std::size_t options_before = command.get_options().size();
  arguments->training.add(command);
  const std::vector<CLI::Option*> options = command.get_options();
  for (std::size_t index = options_before; index < options.size(); ++index) options[index]->needs(step);
  command
      .add_option("--device", arguments->training.device,
                  "device of the step, for its capacity and its padding of tensors: a preset, a JSON file or a size (80GB)")
      ->type_name("NAME|FILE|SIZE")
      ->needs(step);
  command.add_option("--profile-out", arguments->profile, "write the step's profile to this file")
      ->type_name("FILE")
      ->needs(step);

  command.add_option("--trace-out", arguments->trace, "write the step's trace, with all its allocations, to this file")
      ->type_name("FILE")
      ->needs(step);

  command.add_flag("--train-step-profile", arguments->runs_step, "run one real training step and measure it by stage")
      ->excludes(as_json);
  arguments->real_step.add(command);
  command.callback([arguments, &command, &status] {
    try {
      status = run_estimate(*arguments, command);
    } catch (const memprof::error& fault) {
      print_error("estimate", fault.what());
      status = bad_input;
    }
  });
}

}  // namespace memprof_tool
