#include "commands.hpp"
#include "conversion.hpp"
#include "help_text.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

namespace memprof_tool {

void add_profile(CLI::App& program, int& status) {
  const auto asked = std::make_shared<conversion>();
  asked->subcommand = "profile";
  asked->format = "profile";
  CLI::App& command = *program.add_subcommand("profile", "write the profile of a trace as JSON");
  set_footer(command, "", "the profile cannot be written", bad_input_text);
  command.add_option("FILE", asked->input, "a trace, or a JSON profile to convert to the current version")->required();
  command.add_option("-o,--output", asked->output, "output file; may be /dev/stdout")->required()->type_name("FILE");
  command.add_flag("--facets", asked->has_facets,
                   "include the facets that follow individual blocks; takes several times as long");
  command.callback([asked, &status] { status = convert(*asked); });
}

}  // namespace memprof_tool
