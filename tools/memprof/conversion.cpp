#include "conversion.hpp"

#include "complain.hpp"
#include "conversion_input.hpp"
#include "exit_status.hpp"
#include "format_writer.hpp"
#include "option_values.hpp"
#include "output_file.hpp"

#include <memprof/detail/error.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>

namespace memprof_tool {
namespace {

/// "a, b or c"
std::string joined_with_or(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index)
    text += (index == 0 ? "" : index + 1 == names.size() ? " or " : ", ") + names[index];
  return text;
}

/// Throws `memprof::error` if the output is the input, or a file that is not to be replaced, or no place for that format.
void check_output(const conversion& asked) {
  const output_format& format = output_format_of(asked.format);
  keep_input(asked.input, asked.output);
  if (format.is_folder) {
    if (asked.output == standard_output) memprof::detail::raise("'-': " + asked.format + " is a folder of tables; name a folder");
    for (const std::string_view name : table_names)
      keep_other_file(std::filesystem::path{asked.output} / (std::string{name} + '.' + asked.format), format.kind);
  } else {
    keep_other_file(asked.output, format.kind);
    if (!format.is_text) keep_terminal(asked.output, asked.format);
  }
}

/// Throws `memprof::error` if the format needs more than the input has.
void check_events(const conversion& asked, const conversion_input& input) {
  if (input.has_events()) return;
  if (const std::string_view needs = output_format_of(asked.format).needs; !needs.empty())
    memprof::detail::raise("'" + asked.input + "' is a profile, but " + asked.format + " needs a trace, which has " +
                           std::string{needs} + "; a profile becomes " + joined_with_or(output_format_names(true)));
  if (asked.has_facets) memprof::detail::raise("'" + asked.input + "' is a profile; --facets needs a trace");
}

}  // namespace

int convert(const conversion& asked) {
  try {
    check_output(asked);
    conversion_input input{asked.input, asked.reading, asked.imports, asked.subcommand};
    check_events(asked, input);
    const bool is_trace = output_format_of(asked.format).kind.name == trace_file_kind.name;
    if (input.is_own() && !is_trace) (void)input.profile(asked.asked_facets());  // finds out how much of it can be read
    write_format(asked, input);
    if (const std::string complaint = input.complaint(asked.output); !complaint.empty()) print_error(asked.subcommand, complaint);
    return input.is_whole() ? success : bad_input;
  } catch (const output_error& fault) {
    print_error(asked.subcommand, fault.what());
    return failed;
  } catch (const memprof::error& fault) {
    print_error(asked.subcommand, fault.what());
  } catch (const std::bad_alloc&) {
    print_error(asked.subcommand, "'" + asked.input + "': out of memory while converting it");
  }
  return bad_input;
}

void add_reading_options(CLI::App& command, reading_options& options) {
  command.add_flag("--per-core", options.per_core,
                   "ttnn-graph: count circular buffers on their own cores, as newer trackers do (default: all on one core)");
  command.add_option("--module", options.module, "xplane: read only this program")->type_name("NAME");
  command
      .add_option("--classes", options.classes, "xplane: TOML file of rules for the categories of blocks (see docs/formats.md)")
      ->type_name("FILE");
  command
      .add_option("--frames", options.frames,
                  "heaptrack, torch-snapshot: the frames of stacks that become operations: own (without those of the C++ "
                  "standard library and of allocators, the default of torch-snapshot) or all; without, heaptrack's stacks stay "
                  "stacks, as of memprof run --stacks=all")
      ->type_name("KIND")
      ->check(one_of("kind", {"own", "all"}));
  command
      .add_option(
          "--operations", options.operations,
          "other tools' recordings: operations with a row of their own in the profile; the others within each operation share "
          "one (default: " +
              std::to_string(memprof::imported_operations) + ")")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()));
}

std::function<void()> add_writing_options(CLI::App& command, conversion& asked) {
  struct format_option {
    const CLI::Option* option;
    std::string formats;  ///< "csv, jsonl"
  };
  std::vector<format_option> options;
  const auto add = [&](const std::string& name, auto& value, const std::string& formats, const std::string& what) {
    CLI::Option* const made = command.add_option(name, value, formats + ": " + what);
    options.push_back({made, formats});
    return made;
  };
  add("--of", asked.of, "collapsed", "count the bytes live at the peak or at the end, or all that were allocated (default: peak)")
      ->type_name("WHAT")
      ->check(one_of("value", {"peak", "end", "all"}));
  add("--space", asked.space, "dhat, massif, heaptrack", "memory space (default: the one with the greatest peak)")
      ->type_name("NAME");
  add("--run", asked.run, "csv, jsonl, parquet, speedscope", "name of the run (default: the name of FILE)")->type_name("NAME");
  add("--label", asked.labels, "csv, jsonl, parquet, pprof", "label for the run, such as commit=3f2c1e; may be repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1)
      ->check([](const std::string& text) {
        const bool is_pair = text.find('=') != std::string::npos && text.front() != '=';
        return is_pair ? std::string{} : "'" + text + "' must be NAME=VALUE";
      });
  add("--events", asked.events, "torch-snapshot", "maximum number of events per memory space (default: 200000)")
      ->type_name("N")
      ->check(whole_number(1));
  options.push_back({command.add_flag("--facets", asked.has_facets,
                                      "profile: include the facets that follow individual blocks; takes several times as long"),
                     "profile"});
  return [options, &asked] {
    for (const format_option& each : options) {
      const bool is_used = (", " + each.formats + ", ").find(", " + asked.format + ", ") != std::string::npos;
      if (each.option->count() > 0 && !is_used)
        throw CLI::ValidationError{each.option->get_name(),
                                   "it applies to " + each.formats + ", but the format is " + asked.format};
    }
  };
}

}  // namespace memprof_tool
