#include "help_text.hpp"

#include <memprof/detail/terminal.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

namespace memprof_tool {
namespace {

/// Breaks a text into lines of at most `columns`. `column` is where the first one begins; the others are indented by `indent`.
/// Only single words may be longer. Line ends in the text stay.
std::string wrapped(std::string_view text, std::size_t column, std::size_t indent, std::size_t columns) {
  std::string result;
  bool begins_line = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (!begins_line && column + 1 + word.size() > columns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
      begins_line = true;
    }
    if (!begins_line) result += ' ';
    result += word;
    column += word.size() + (begins_line ? 0 : 1);
    begins_line = false;
    if (end < text.size() && text[end] == '\n') {
      result += '\n';
      if (end + 1 < text.size() && text[end + 1] != '\n') result += std::string(indent, ' ');
      column = indent;
      begins_line = true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

/// "--a, --b or --c", in the order of the alphabet: CLI11 keeps options in a set of addresses.
std::string listed_options(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* const option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (index > 0) text += index + 1 == names.size() ? " or " : ", ";
    text += names[index];
  }
  return text;
}

/// CLI11's names of types, in the style of the others.
std::string type_text(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name == "INT" || name == "UINT" || name == "FLOAT" ? "N" : name;
}

}  // namespace

std::string help_text::make_description(const CLI::App* command) const {
  return wrapped(command->get_description(), 0, 0, columns_) + "\n\n";
}

std::string help_text::make_usage(const CLI::App* command, std::string name) const {
  std::string text = CLI::Formatter::make_usage(command, std::move(name));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return wrapped(text, 0, std::string_view{"Usage: "}.size(), columns_) + "\n";
}

std::string help_text::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = option->get_name(is_positional, !is_positional);
  if (const std::size_t value = name.find('{'); value != std::string::npos) name.erase(value);  // of a flag without one
  std::string meaning = option->get_description();
  if (option->get_type_size() != 0) {
    const std::string type = type_text(*option);
    if (!is_positional) name += ' ' + type;
    if (is_positional && option->get_expected_max() == CLI::detail::expected_max_vector_size) name += " ...";
    if (!option->get_default_str().empty()) meaning += " (default: " + option->get_default_str() + ")";
    if (option->get_required() && !is_positional) meaning += " (required)";
  }
  if (!option->get_needs().empty()) meaning += "; only with " + listed_options(option->get_needs());
  if (!option->get_excludes().empty()) meaning += "; not with " + listed_options(option->get_excludes());
  for (std::size_t comma = name.find(",-"); comma != std::string::npos; comma = name.find(",-", comma + 1))
    name.insert(comma + 1, " ");
  return entry(name, meaning);
}

std::string help_text::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string help_text::make_footer(const CLI::App* command) const {
  const std::string text = command->get_footer();
  return text.empty() ? std::string{} : wrapped(text, 0, 0, columns_) + '\n';
}

std::string help_text::entry(const std::string& name, const std::string& meaning) const {
  const std::size_t indent = std::min<std::size_t>(26, columns_ / 3);
  std::string text = "  " + name;
  if (text.size() + 2 > indent) {
    text += '\n' + std::string(indent, ' ');
  } else {
    text.append(indent - text.size(), ' ');
  }
  return text + wrapped(meaning, indent, indent, columns_) + '\n';
}

std::size_t help_columns() {
  const std::size_t terminal = memprof::detail::terminal_columns(stdout);
  return terminal == 0 ? 80 : std::clamp<std::size_t>(terminal, 40, 100);
}

void set_footer(CLI::App& command, const std::string& text, const std::string& failed, const std::string& bad_input) {
  command.footer((text.empty() ? "" : text + "\n\n") + "Exit status: 0 on success; " +
                 (failed.empty() ? "" : "1 if " + failed + "; ") + "2 if " + bad_input + '.');
}

}  // namespace memprof_tool
