#include "commands.hpp"
#include "conversion.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_format.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace memprof_tool {
namespace {

/// "'out.txt' has no ending that means a format (.pb.gz: pprof, ...)"
std::string unknown_ending(const std::string& output) {
  std::string known;
  for (const output_format& each : output_formats()) {
    for (const std::string_view ending : each.endings) {
      if (!ending.empty()) known += (known.empty() ? "" : ", ") + std::string{ending} + " (" + std::string{each.name} + ")";
    }
  }
  return "the name '" + output + "' does not say which format is meant; use --format, as --format csv, jsonl or parquet for a " +
         "folder of tables, or one of the endings " + known;
}

}  // namespace

void add_convert(CLI::App& program, int& status) {
  const auto asked = std::make_shared<conversion>();
  asked->subcommand = "convert";
  CLI::App& command = *program.add_subcommand("convert", "read a recording in any format and write it in another");
  set_footer(command,
             "memprof import, export and profile do the same: FILE and OUT are of one kind there. An existing file is replaced "
             "only if it is empty or has the format that is written.",
             "the output cannot be written", bad_input_text);
  command.add_option("FILE", asked->input, "a trace, a JSON profile, or another tool's recording; - is the standard input")
      ->required();
  command.add_option("-o,--output", asked->output, "output file; for csv, jsonl and parquet, a folder; - is the standard output")
      ->required()
      ->type_name("OUT");
  command.add_option("--format", asked->format, output_formats_text() + " (default: by the ending of OUT)")
      ->type_name("FORMAT")
      ->check(one_of("format", output_format_names()));
  std::vector<std::string> formats = foreign_formats;
  formats.insert(formats.begin(), "auto");
  command.add_option("--from", asked->reading.format, "format of another tool's recording (default: auto, by its content)")
      ->type_name("FORMAT")
      ->check(one_of("format", formats));
  const std::function<void()> refuse_unused = add_writing_options(command, *asked);
  add_reading_options(command, asked->reading);
  command.callback([asked, refuse_unused, &status] {
    if (asked->format.empty()) asked->format = format_of_ending(asked->output);
    if (asked->format.empty()) throw CLI::ValidationError{"--output", unknown_ending(asked->output)};
    refuse_unused();
    status = convert(*asked);
  });
}

}  // namespace memprof_tool
