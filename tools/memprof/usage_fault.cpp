#include "usage_fault.hpp"

#include "file_names.hpp"
#include "option_values.hpp"

#include <memprof/report/text/text_format.hpp>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof_tool {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string see_help(const std::string& command_name) { return "; see '" + command_name + " --help'"; }

/// `hint`, or else where the help is.
std::string with_hint(const std::string& fault, const std::string& hint, const std::string& command_name) {
  return fault + (hint.empty() ? see_help(command_name) : hint);
}

/// How to write the command line of a program to run, if there is one without "--" before it; otherwise empty.
std::string program_hint(const CLI::App& command, const std::string& command_name) {
  const CLI::Option* const program = command.get_option_no_throw("COMMAND");
  if (program == nullptr || program->results().empty()) return {};
  return "; the program and its arguments follow '--': " + command_name + " -- " + program->results().front() + " ...";
}

/// Which option an argument too many may be the value of: the file to write, or the model; of a program to run, who runs it.
/// Empty if there is none.
std::string value_hint(const CLI::App& command, const std::string& argument) {
  std::error_code failure;
  if (command.get_name() == "fit" && std::filesystem::is_regular_file(argument, failure) && !argument.ends_with(".json"))
    return "; scripts of PyTorch and, after '--', programs that were built with memprof are asked by 'memprof fit' of the Python "
           "package; 'memprof run -- PROGRAM' records any program";
  for (const char* const name : {"--output", "--config"}) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option != nullptr && option->empty()) return "; did you mean '" + std::string{name} + ' ' + argument + "'?";
  }
  return {};
}

std::string unknown_option(const CLI::App& command, const std::string& command_name, const std::string& argument,
                           bool says_where_program_begins) {
  const std::string name = argument.substr(0, argument.find('='));
  std::string hint = says_where_program_begins ? std::string{} : program_hint(command, command_name);
  if (hint.empty() && name.starts_with("--")) hint = suggestion(name, option_names(command));
  return with_hint("unknown option '" + name + "'", hint, command_name);
}

/// CLI11's text in the words of the other messages.
std::string reworded(const std::string& text) {
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) return "the value is not valid: " + text.substr(conversion.size());
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return text == "A subcommand is required" ? "a subcommand is required" : text;
  const std::string name = text.substr(0, colon);
  const std::string_view rest = std::string_view{text}.substr(colon + 2);
  if (rest.starts_with("1 required ") && rest.ends_with(" missing")) return name + " needs a value";
  if (rest.starts_with("At Most 1 required but received ")) return name + " was given more than once";
  // "--format: unknown format 'x'" names it twice.
  const std::string_view bare = std::string_view{name}.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::string kind{bare};
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return rest.starts_with("unknown " + kind + " ") ? std::string{rest} : text;
}

/// As one word of a command line for a shell. It is shown within single quotes, so it is in double ones if it needs any.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz%+,-./:=@_";
  const bool is_plain = std::all_of(text.begin(), text.end(), [&](char letter) {
    return static_cast<unsigned char>(letter) >= 0x80 || plain.find(letter) != plain.npos;
  });
  if (is_plain) return text;
  std::string result;
  for (const char letter : text) {
    if (std::string_view{"\"$\\`"}.find(letter) != std::string_view::npos) result += '\\';
    result += letter;
  }
  return '"' + result + '"';
}

}  // namespace

std::string unknown_subcommand(const CLI::App& parent, const std::string& parent_name, const std::string& argument) {
  std::vector<std::string> names;
  for (const CLI::App* const command : parent.get_subcommands({})) names.push_back(command->get_name());
  std::error_code failure;
  if (parent.get_parent() == nullptr && std::filesystem::exists(argument, failure)) {
    const std::string file = memprof::detail::on_one_line(argument);
    if (std::filesystem::is_directory(argument, failure))
      return parent_name + ": '" + file + "' is a folder, not a subcommand; name a file in it";
    return parent_name + ": '" + file + "' is a file, not a subcommand; did you mean '" + parent_name + " show " +
           memprof::detail::on_one_line(shell_word(argument)) + "'?";
  }
  return parent_name + ": " +
         with_hint("unknown subcommand '" + memprof::detail::on_one_line(argument) + "'", suggestion(argument, names),
                   parent_name);
}

std::string help_complaint(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  std::string name = program.get_name();
  for (const std::string& word : words) {
    if (word == "-h" || word == "--help") continue;
    const std::vector<const CLI::App*> named =
        command->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    if (named.empty()) {
      if (command->get_require_subcommand_min() > 0 && !word.starts_with('-')) return unknown_subcommand(*command, name, word);
      return program.get_name() + " help: unexpected argument '" + memprof::detail::on_one_line(word) + "'" + see_help(name);
    }
    command = named.front();
    name += ' ' + word;
  }
  return {};
}

std::string usage_complaint(const CLI::App& program, const CLI::ParseError& fault, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  std::string name = program.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += ' ' + command->get_name();
  }
  if (const std::string missing = missing_file_name(*command); !missing.empty()) return name + ": " + missing;
  // A misspelt option comes first: CLI11 may report what is missing because of it.
  std::vector<std::string> left = program.remaining(true);
  left.erase(std::find(left.begin(), left.end(), "--"), left.end());  // what follows is another program's
  // CLI11 forgets the order, and takes the value of an unknown option for the program, whose options are then left.
  const auto program_begins = std::find(words.begin(), words.end(), "--");
  const auto option = std::find_if(words.begin(), program_begins, [&](const std::string& word) {
    return word.starts_with('-') && word != "-" && std::find(left.begin(), left.end(), word) != left.end();
  });
  if (command->get_require_subcommand_min() > 0 && !left.empty() && !left.front().starts_with('-'))
    return unknown_subcommand(*command, name, left.front());
  std::string what;
  if (option != program_begins) {
    what = unknown_option(*command, name, *option, program_begins != words.end());
  } else if (!left.empty()) {
    const std::string program_follows = program_hint(*command, name);
    const std::string hint = program_follows.empty() ? value_hint(*command, left.front()) : program_follows;
    what = with_hint("unexpected argument '" + left.front() + "'", hint, name);
  } else {
    what = reworded(fault.what());
    const bool says_what_is_right = dynamic_cast<const CLI::ValidationError*>(&fault) != nullptr;
    if (!says_what_is_right) what += see_help(name);
  }
  return name + ": " + memprof::detail::on_one_line(what);
}

}  // namespace memprof_tool
