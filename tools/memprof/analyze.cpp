#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "picture_file.hpp"
#include "progress.hpp"
#include "recording.hpp"
#include "text_output.hpp"
#include "training_options.hpp"

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/breakdown_json.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/step_analysis.hpp>
#include <memprof/toolkit/analysis/step_analysis_json.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/page/peak_picture.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

using memprof::analyzed_space;

struct analyze_arguments {
  std::vector<std::string> inputs;
  memprof::step_question question;
  bool requires_fit = false;
  bool visualize_peak = false;
  bool asks_for_picture = false;  ///< with --title or --output
  std::string title;
  std::vector<std::string> output{"memory_peak_visualization.png"};
  std::string json;       ///< the file; empty: none
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
};

/// Adds the causes in a trace.
void add_causes(std::vector<memprof::file_causes>& all, const memprof::profile& profile, const std::string& path) {
  const memprof::detail::file_handle file = open_recording(path);
  if (!memprof::is_trace_file(file.get())) return;
  std::vector<memprof::reserved_causes> found = memprof::all_reserved_causes_in(memprof::trace_file{file.get(), path}, profile);
  if (!found.empty()) all.push_back({path, std::move(found)});
}

nlohmann::ordered_json document_of(const memprof::step_analysis& analyzed, const std::vector<std::string>& complaints) {
  return memprof::with_caveats(memprof::to_json(analyzed), complaints);
}

/// Analyzes all files. A file that cannot be read does not affect the others.
memprof::step_analysis analyze_files(const analyze_arguments& arguments, std::vector<std::string>& complaints) {
  memprof::step_analysis all;
  for (const std::string& path : arguments.inputs) {
    try {
      recorded_runs runs = read_runs(path);
      if (!runs.complaint.empty()) complaints.push_back(runs.complaint);
      for (memprof::profile& read : runs.profiles) {
        const std::vector<analyzed_space> spaces = memprof::analyze_spaces(std::move(read), arguments.question);
        all.spaces.insert(all.spaces.end(), spaces.begin(), spaces.end());
        add_causes(all.causes, *spaces.front().profile, path);
      }
    } catch (const memprof::error& fault) {
      const std::string what = fault.what();
      complaints.push_back(what.find(path) == std::string::npos ? "'" + path + "': " + what : what);
    } catch (const std::bad_alloc&) {
      complaints.push_back("'" + path + "': out of memory while reading it");
    }
  }
  return all;
}

/// Whether the standard output is for the numbers or a picture alone.
bool prints_output(const analyze_arguments& arguments) {
  std::vector<std::string> outputs{arguments.json};
  if (arguments.visualize_peak) outputs.insert(outputs.end(), arguments.output.begin(), arguments.output.end());
  for (std::size_t index = 1; index < outputs.size(); ++index) keep_apart(arguments.json, outputs[index]);
  return is_printed(outputs, arguments.as_json ? "--json" : "");
}

int draw(const std::vector<analyzed_space>& bars, const analyze_arguments& arguments, const std::string& path,
         memprof::picture_format format) {
  const drawing result = draw_picture(
      [&](const std::string& file) { return memprof::peak_picture_script(bars, arguments.title, format, file); }, path);
  if (!result.has_gnuplot) {
    print_error("analyze",
                "no picture: the program gnuplot was not found (package gnuplot-nox on Debian); the tables are complete");
    return success;
  }
  if (!result.complaint.empty()) {
    print_error("analyze", "no picture: gnuplot failed: " + result.complaint);
    return failed;
  }
  if (path != standard_output)
    print("Visualization saved to: " + path + "\n", arguments.as_json || prints_output(arguments) ? stderr : stdout);
  return success;
}

int draw_all(const std::vector<analyzed_space>& bars, const analyze_arguments& arguments) {
  int status = success;
  for (const std::string& output : arguments.output) {
    for (const auto& [path, format] : pictures_of(output)) {
      const int result = draw(bars, arguments, path, format);
      if (result != success) status = result;
    }
  }
  return status;
}

/// The exit status of --require-fit: whether the peaks of all spaces with a known device fit.
int require_fit(const std::vector<analyzed_space>& analyzed) {
  const std::optional<bool> fit = memprof::all_fit(analyzed);
  if (!fit) memprof::detail::raise("--require-fit: no device is known; pass --device NAME or --device-memory SIZE");
  return *fit ? success : failed;
}

int run_analyze(const analyze_arguments& arguments) {
  int status = success;
  const bool is_quiet = prints_output(arguments);
  if (arguments.asks_for_picture && !arguments.visualize_peak)
    print_error("analyze", "no picture: --title and --output have no effect without --visualize-peak");
  std::vector<std::string> complaints;
  const memprof::step_analysis found = analyze_files(arguments, complaints);
  const std::vector<analyzed_space>& analyzed = found.spaces;
  for (const std::string& complaint : complaints) {
    print_error("analyze", complaint);
    status = bad_input;
  }
  if (analyzed.empty()) return bad_input;
  if (is_quiet) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document_of(found, complaints))) + '\n');
  } else {
    // Elsewhere the lines are the original's.
    const std::size_t columns = arguments.width != 0 ? arguments.width : memprof::detail::terminal_columns(stdout);
    print(memprof::to_text(found, arguments.question.sizes, columns));
  }
  if (!arguments.json.empty()) {
    attempt(status, "analyze", [&] {
      keep_other_file(arguments.json, {"an analysis", [](std::string_view begin) {
                                         return begin.find(memprof::breakdown_json_format) != begin.npos;
                                       }});
      write_output(arguments.json, memprof::detail::dump(document_of(found, complaints)) + '\n');
      return success;
    });
  }
  if (arguments.visualize_peak) attempt(status, "analyze", [&] { return draw_all(analyzed, arguments); });
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    print_error("analyze", "cannot write the tables: " + memprof::detail::reason_in_errno());
    return bad_input;
  }
  if (arguments.requires_fit) attempt(status, "analyze", [&] { return require_fit(analyzed); });
  return status;
}

/// An option whose value is a size. An invalid size is an error in the command line.
template <class Target>
CLI::Option* add_size(CLI::App& command, const std::string& name, Target& target, std::int64_t least,
                      const std::string& meaning) {
  return command
      .add_option_function<std::string>(
          name,
          [name, least, &target](const std::string& text) {
            try {
              const std::int64_t bytes = memprof::parse_byte_size(text);
              if (bytes < least) throw CLI::ValidationError{name, "'" + text + "' is too small"};
              target = bytes;
            } catch (const memprof::error& fault) {
              throw CLI::ValidationError{name, fault.what()};
            }
          },
          meaning)
      ->type_name("SIZE");
}

}  // namespace

void add_analyze(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<analyze_arguments>();
  CLI::App& command = *program.add_subcommand("analyze", "break down the memory of a training step and say whether it fits");
  set_footer(command,
             "SIZE is a number of bytes with an optional unit: 12884901888, 1.5e9, 12GB (12 * 10^9), 12GiB (12 * 2^30). MB, in "
             "the tables of a tracker's log, is 2^20 bytes. Option names also work with underscores: --device_memory.",
             "gnuplot failed, or with --require-fit a peak does not fit", bad_file_text);
  command
      .add_option("--input,--logs,FILE", arguments->inputs,
                  "traces, JSON profiles, or logs with memory summaries of tt-train's tracker; - reads standard input")
      ->type_name("FILE");
  CLI::Option* const memory =
      add_size(command, "--device-memory", arguments->question.sizes.device_memory, 1,
               "memory of the device, to say whether the peak fits (default: the capacity in the profile; 12GiB for a log of "
               "tt-train's tracker)");
  command
      .add_option_function<std::string>(
          "--device",
          [arguments](const std::string& text) {
            try {
              arguments->question.device = device_of(text);
            } catch (const memprof::error& fault) {
              throw CLI::ValidationError{"--device", fault.what()};
            }
          },
          "device: a preset (wormhole-12gb, gpu-80gb, ...), a JSON file or a size")
      ->type_name("NAME|FILE|SIZE")
      ->excludes(memory);
  command.add_flag("--require-fit", arguments->requires_fit, "end with status 1 unless each peak fits on its device");
  add_size(command, "--model-size", arguments->question.sizes.model_size, 0,
           "expected size of the model (default: 2 bytes per parameter)");
  add_size(command, "--optimizer-size", arguments->question.sizes.optimizer_size, 0,
           "expected size of the optimizer state (default: twice the model's)");
  add_size(command, "--gradients-size", arguments->question.sizes.gradients_size, 0,
           "expected size of the gradients (default: the model's)");
  command.add_flag("--visualize-peak", arguments->visualize_peak,
                   "draw the composition of the peaks as stacked bars (needs gnuplot)");
  command.add_flag("--use-actual-sizes", arguments->question.sizes.use_actual_sizes,
                   "break the peaks down by the measured sizes of model and optimizer instead of the expected ones");
  command.add_option("--title", arguments->title, "title of the picture")->type_name("TEXT");
  command
      .add_option("--output", arguments->output,
                  "picture to write: *.png, *.svg, or a name without extension for both (default: memory_peak_visualization.png)")
      ->type_name("FILE")
      ->check(CLI::Validator{output_error_of, ""});
  CLI::Option* const json =
      command
          .add_option("--json", arguments->json,
                      "print the verdict, the numbers and their caveats as JSON; with FILE, write them there, beside the tables")
          ->type_name("[FILE]")
          ->expected(0, 1);
  command
      .add_option("--space", arguments->question.space,
                  "memory space to analyze, or all (default: dram, else the first that is not cpu, else cpu)")
      ->type_name("NAME");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, else any)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &command, json, &status] {
    // In "--json RUN", without the name of an output, the parser takes the run for it.
    if (arguments->inputs.empty() && !arguments->json.empty()) arguments->inputs = {std::exchange(arguments->json, {})};
    arguments->as_json = json->count() > 0 && arguments->json.empty();
    if (arguments->inputs.empty()) throw CLI::RequiredError{"FILE"};  // were the option required, CLI11 would name only the flag
    arguments->asks_for_picture = command.count("--title") + command.count("--output") > 0;
    status = run_reported("analyze", [&] { return run_analyze(*arguments); });
  });
}

}  // namespace memprof_tool
