#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "picture_file.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/page/run_picture.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct plot_arguments {
  std::string file;
  std::vector<std::string> output;
  std::string space;
  std::string title;
  memprof::composition by = memprof::composition::automatic;
};

/// The spaces of a profile that were used, the one that reports lead with first; or only the requested one.
std::vector<memprof::drawn_space> drawn_spaces_of(const memprof::profile& profile, const std::string& asked) {
  if (!asked.empty()) return {{&profile, &profile.space(asked), {}}};
  const memprof::space_profile* const primary = memprof::detail::primary_space(profile, {});
  std::vector<memprof::drawn_space> chosen;
  if (primary != nullptr && primary->cumulative_peak > 0) chosen.push_back({&profile, primary, {}});
  for (const memprof::space_profile& space : profile.spaces) {
    if (&space != primary && space.cumulative_peak > 0) chosen.push_back({&profile, &space, {}});
  }
  return chosen;
}

/// A name that tells the profiles of one file apart.
std::string name_of(const memprof::profile& profile) {
  std::string name = profile.provenance.section;
  if (name.empty()) name = "line " + std::to_string(profile.provenance.line);
  return profile.process.rank < 0 ? name : name + " (rank " + std::to_string(profile.process.rank) + ")";
}

/// The spaces to draw; the first few if there are many.
std::vector<memprof::drawn_space> spaces_of(const recorded_runs& runs, const plot_arguments& arguments) {
  constexpr std::size_t most = 8;
  std::vector<memprof::drawn_space> drawn;
  for (const memprof::profile& profile : runs.profiles) {
    for (memprof::drawn_space one : drawn_spaces_of(profile, arguments.space)) {
      if (runs.profiles.size() > 1) one.name = name_of(profile) + ", " + one.space->name;
      drawn.push_back(std::move(one));
    }
  }
  if (drawn.empty() && !runs.complaint.empty()) memprof::detail::raise(runs.complaint);
  if (drawn.empty()) {
    memprof::detail::raise("'" + arguments.file + "': nothing to draw: no memory was allocated");
  }
  if (drawn.size() > most) {
    print_error("plot", "only the first " + std::to_string(most) + " of " + std::to_string(drawn.size()) +
                            " memory spaces are drawn; use --space to choose one");
    drawn.resize(most);
  }
  return drawn;
}

std::string default_title(const memprof::profile& profile, const std::string& file) {
  std::string title = file == "-" ? "" : file.substr(file.rfind('/') + 1);
  if (!profile.device.empty()) title += (title.empty() ? "" : ", ") + profile.device;
  if (profile.mode == memprof::run_mode::no_dispatch) title += (title.empty() ? "" : ", ") + std::string{"no dispatch"};
  return title;
}

int draw(const std::vector<memprof::drawn_space>& spaces, const plot_arguments& arguments) {
  const bool is_quiet = is_printed(arguments.output);
  const std::string title = arguments.title.empty() ? default_title(*spaces.front().profile, arguments.file) : arguments.title;
  for (const std::string& output : arguments.output) {
    for (const auto& [path, format] : pictures_of(output)) {
      const drawing result = draw_picture(
          [&, format = format](const std::string& file) {
            return memprof::run_picture_script(spaces, {.title = title, .by = arguments.by}, format, file);
          },
          path);
      if (!result.has_gnuplot) {
        print_error("plot", "no picture: the program gnuplot was not found (package gnuplot-nox on Debian)");
        return success;
      }
      if (!result.complaint.empty()) {
        print_error("plot", "no picture: gnuplot failed: " + result.complaint);
        return failed;
      }
      if (!is_quiet) print("Picture saved to: " + path + "\n");
    }
  }
  return success;
}

int run_plot(const plot_arguments& arguments) {
  try {
    const recorded_runs runs = read_runs(arguments.file);
    const int status = draw(spaces_of(runs, arguments), arguments);
    if (runs.complaint.empty()) return status;
    print_error("plot", runs.complaint);
  } catch (const memprof::error& fault) {
    print_error("plot", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("plot", "'" + arguments.file + "': out of memory while reading it");
  }
  return bad_input;
}

}  // namespace

void add_plot(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<plot_arguments>();
  CLI::App& command =
      *program.add_subcommand("plot", "plot live bytes over time and the composition of the peak (needs gnuplot)");
  set_footer(command, "", "gnuplot failed", bad_file_text);
  command
      .add_option("RUN", arguments->file,
                  "a trace, a JSON profile, or a log with memory summaries of tt-train's tracker; - reads standard input")
      ->required();
  command
      .add_option(
          "-o,--output", arguments->output,
          "picture to write: *.png, *.svg, or a name without extension for both; - writes PNG to the standard output; may be "
          "repeated")
      ->required()
      ->type_name("FILE")
      ->check(CLI::Validator{output_error_of, ""});
  command.add_option("--space", arguments->space, "draw only this memory space (default: all that were used)")->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--by",
          [arguments](const std::string& kind) {
            arguments->by = kind == "category" ? memprof::composition::category : memprof::composition::operation;
          },
          "break the peak down by category or by operation (default: category if blocks have any)")
      ->check(one_of("value", {"category", "operation"}))
      ->type_name("WHAT");
  command.add_option("--title", arguments->title, "title of the picture (default: the file's name)")->type_name("TEXT");
  command.callback([arguments, &status] { status = run_plot(*arguments); });
}

}  // namespace memprof_tool
