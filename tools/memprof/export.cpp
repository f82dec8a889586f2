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

namespace memprof_tool {

void add_export(CLI::App& program, int& status) {
  const auto asked = std::make_shared<conversion>();
  asked->subcommand = "export";
  CLI::App& command = *program.add_subcommand("export", "convert a trace or a profile to the format of another tool");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  command.add_option("FILE", asked->input, "a trace or a JSON profile")->required();
  command.add_option("--format", asked->format, output_formats_text())
      ->required()
      ->type_name("FORMAT")
      ->check(one_of("format", output_format_names()));
  command.add_option("-o,--output", asked->output, "output file; for csv, jsonl and parquet, a folder")
      ->required()
      ->type_name("OUT");
  const std::function<void()> refuse_unused = add_writing_options(command, *asked);
  command.callback([asked, refuse_unused, &status] {
    refuse_unused();
    status = convert(*asked);
  });
}

}  // namespace memprof_tool
