#include "commands.hpp"
#include "conversion.hpp"
#include "help_text.hpp"
#include "option_values.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

namespace memprof_tool {

void add_import(CLI::App& program, int& status) {
  const auto asked = std::make_shared<conversion>();
  asked->subcommand = "import";
  asked->imports = true;
  CLI::App& command = *program.add_subcommand("import", "convert another tool's recording to a trace or a profile");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  std::vector<std::string> formats = foreign_formats;
  formats.insert(formats.begin(), "auto");
  command
      .add_option(
          "FORMAT", asked->reading.format,
          "torch-snapshot (PyTorch's _dump_snapshot, pickle or JSON), rmm (CSV of its logging adaptor), heaptrack (packed "
          "or not), xplane (XLA profile, *.xplane.pb or *.hlo_proto.pb), tt-mlir (log of its runtime), ttnn-graph (JSON of "
          "GraphProcessor), session (JSON of pie's memory profiler), or auto to detect the format from the content")
      ->required()
      ->check(one_of("format", formats));
  command.add_option("FILE", asked->input, "the other tool's recording")->required();
  command.add_option("-o,--output", asked->output, "output file: a profile if it ends in .json, else a trace")
      ->required()
      ->type_name("OUT");
  add_reading_options(command, asked->reading);
  command.callback([asked, &status] {
    asked->format = asked->output.ends_with(".json") ? "profile" : "trace";
    status = convert(*asked);
  });
}

}  // namespace memprof_tool
