#include "analyze.hpp"

#include "exit_status.hpp"
#include "picture_file.hpp"
#include "progress.hpp"
#include "recording.hpp"

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/format/profile_summary.hpp>
#include <memprof/format/tracker_log.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/report/breakdown_json.hpp>
#include <memprof/report/breakdown_text.hpp>
#include <memprof/report/peak_picture.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

using memprof::analyzed_summary;

struct analyze_arguments {
  std::vector<std::string> logs;
  memprof::breakdown_options sizes;
  std::string space;
  bool visualize_peak = false;
  bool asks_for_picture = false;  ///< with --title or --output
  std::string title;
  std::vector<std::string> output{"memory_peak_visualization.png"};
  std::string json;
};

void complain(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "memprof analyze: %s\n", what.c_str());
}

/// A profile is recognised by its content: a log may have any name, and perhaps some JSON in it.
bool is_profile(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find(memprof::detail::summary_header) == std::string_view::npos;
}

/// The profile that a trace or a profile holds; none: it is a log, whose text is then in `text`. Says what a trace lacks.
std::optional<memprof::profile> read_profile(const std::string& path, std::string& text, int& status) {
  const memprof::detail::file_handle file = open_recording(path);
  if (memprof::is_trace_file(file.get())) {
    recording read = read_recording(file.get(), path);
    if (!read.complaint.empty()) {
      complain(read.complaint);
      status = bad_input;
    }
    return std::move(read.profile);
  }
  const progress shown{"memprof: reading " + path, file.get()};
  text = memprof::detail::read_whole_file(file.get(), path);
  if (!is_profile(text)) return std::nullopt;
  return memprof::parse_json(text, path);
}

std::vector<memprof::memory_summary> read_summaries(const std::string& path, std::string_view space, int& status) {
  std::string text;
  const std::optional<memprof::profile> read = read_profile(path, text, status);
  if (!read) return memprof::parse_tracker_log(text, path);
  const memprof::profile& profile = *read;
  if (!space.empty()) return {memprof::summarize(profile, profile.space(space), path)};
  const memprof::space_profile* const chosen = memprof::detail::primary_space(profile, {});
  if (chosen == nullptr) memprof::detail::raise("the profile has no memory space: nothing was recorded");
  return {memprof::summarize(profile, *chosen, path)};
}

/// All summaries of all files. A file that cannot be read costs no other file.
std::vector<analyzed_summary> analyze_files(const analyze_arguments& arguments, int& status) {
  std::vector<analyzed_summary> analyzed;
  for (const std::string& path : arguments.logs) {
    try {
      for (memprof::memory_summary& summary : read_summaries(path, arguments.space, status)) {
        memprof::memory_breakdown breakdown = memprof::break_down(summary, arguments.sizes);
        analyzed.push_back({std::move(summary), std::move(breakdown)});
      }
    } catch (const memprof::error& fault) {
      const std::string what = fault.what();
      complain(what.find(path) == std::string::npos ? "'" + path + "': " + what : what);
      status = bad_input;
    } catch (const std::bad_alloc&) {
      complain("'" + path + "': out of memory while reading it");
      status = bad_input;
    }
  }
  return analyzed;
}

/// The pictures that a name asks for with its ending; both if it has none.
std::vector<std::pair<std::string, memprof::picture_format>> pictures_of(const std::string& output) {
  using memprof::picture_format;
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png") return {{output, picture_format::png}};
  if (ending == ".svg") return {{output, picture_format::svg}};
  return {{output + ".png", picture_format::png}, {output + ".svg", picture_format::svg}};
}

/// What is wrong with a name for a picture; empty if nothing is.
std::string fault_of_output(const std::string& output) {
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png" || ending == ".svg" || (ending.empty() && !output.empty() && output.back() != '/')) return {};
  return "'" + output + "' has to end in .png or .svg, or be a name without an ending to get both";
}

int draw(const std::vector<analyzed_summary>& bars, const std::string& title, const std::string& path,
         memprof::picture_format format) {
  const drawing result =
      draw_picture([&](const std::string& file) { return memprof::peak_picture_script(bars, title, format, file); }, path);
  if (!result.has_gnuplot) {
    complain("no picture: the program gnuplot was not found (package gnuplot-nox on Debian); the tables are complete");
    return success;
  }
  if (!result.complaint.empty()) {
    complain("no picture: gnuplot failed: " + result.complaint);
    return failed;
  }
  std::printf("Visualization saved to: %s\n", path.c_str());
  return success;
}

int draw_all(const std::vector<analyzed_summary>& bars, const analyze_arguments& arguments) {
  int status = success;
  for (const std::string& output : arguments.output) {
    for (const auto& [path, format] : pictures_of(output)) {
      const int result = draw(bars, arguments.title, path, format);
      if (result != success) status = result;
    }
  }
  return status;
}

/// What goes wrong after the tables is told, and the rest still done.
template <class Action>
void attempt(int& status, Action action) {
  try {
    const int result = action();
    if (status == success) status = result;
  } catch (const memprof::error& fault) {
    complain(fault.what());
    status = bad_input;
  }
}

int run_analyze(const analyze_arguments& arguments) {
  int status = success;
  if (arguments.asks_for_picture && !arguments.visualize_peak)
    complain("no picture: --title and --output are for --visualize-peak");
  const std::vector<analyzed_summary> analyzed = analyze_files(arguments, status);
  if (analyzed.empty()) return bad_input;
  std::fputs(memprof::to_text(analyzed, arguments.sizes).c_str(), stdout);
  if (!arguments.json.empty()) {
    attempt(status, [&] {
      memprof::detail::replace_whole_file(arguments.json, memprof::detail::dump(memprof::to_json(analyzed)) + '\n');
      return success;
    });
  }
  if (arguments.visualize_peak) attempt(status, [&] { return draw_all(analyzed, arguments); });
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    complain("cannot write the tables: " + memprof::detail::reason_in_errno());
    return bad_input;
  }
  return status;
}

/// An option whose value is a size. Its fault is that of the command line.
template <class Target>
void add_size(CLI::App& command, const std::string& name, Target& target, std::int64_t least, const std::string& meaning) {
  command
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
  CLI::App& command = *program.add_subcommand("analyze", "what the memory of a training step consists of, and whether it fits");
  command.footer(
      "SIZE is a number of bytes, perhaps with a unit: 12884901888, 1.5e9, 12GB (12 * 10^9), 12GiB (12 * 2^30).\n"
      "MB in the tables is 2^20 bytes. Options may be spelled with underscores: --device_memory.");
  command.add_option("--logs", arguments->logs, "logs with memory summaries, or traces and profiles (JSON) of memprof")
      ->required()
      ->type_name("FILE");
  add_size(command, "--device-memory", arguments->sizes.device_memory, 1,
           "memory of the device (default: the capacity that a profile tells, else 12GiB)");
  add_size(command, "--model-size", arguments->sizes.model_size, 0, "expected size of the model (default: 2 bytes a parameter)");
  add_size(command, "--optimizer-size", arguments->sizes.optimizer_size, 0, "expected size of the optimizer (default: 2 models)");
  add_size(command, "--gradients-size", arguments->sizes.gradients_size, 0, "expected size of the gradients (default: 1 model)");
  command.add_flag("--visualize-peak", arguments->visualize_peak,
                   "draw what the peaks consist of, as stacked bars (needs gnuplot)");
  command.add_flag("--use-actual-sizes", arguments->sizes.use_actual_sizes,
                   "divide the peaks with the measured sizes of model and optimizer, not with the expected ones");
  command.add_option("--title", arguments->title, "title of the picture")->type_name("TEXT");
  command
      .add_option("--output", arguments->output,
                  "the picture: *.png or *.svg, or a name without an ending for both (default: memory_peak_visualization.png)")
      ->type_name("FILE")
      ->check(CLI::Validator{fault_of_output, ""});
  command.add_option("--json", arguments->json, "write the numbers to this file, too")->type_name("FILE");
  command
      .add_option("--space", arguments->space,
                  "memory space of profiles (default: dram, else the first that is not cpu, else cpu)")
      ->type_name("NAME");
  command.callback([arguments, &command, &status] {
    arguments->asks_for_picture = command.count("--title") + command.count("--output") > 0;
    status = run_analyze(*arguments);
  });
}

}  // namespace memprof_tool
