#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "text_output.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

/// What may stand somewhere, and its meaning for shells that show it.
struct candidate {
  std::string word;
  std::string meaning;
};

struct completed_option {
  std::vector<std::string> names;  ///< "--output", "-o"
  std::string meaning;
  bool takes_value = false;
  std::vector<std::string> choices;  ///< of its value; empty: the shell completes files
};

/// What may follow a subcommand.
struct completed_command {
  std::string path;  ///< "", "/show", "/tt-mlir/run"
  std::vector<completed_option> options;
  std::vector<std::vector<candidate>> positionals;  ///< the choices of each; empty: files
};

completed_option described(CLI::Option& option) {
  completed_option result{{}, option.get_description(), option.get_type_size() != 0, choices_of(option)};
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  return result;
}

/// The command and, after it, its subcommands.
void collect(CLI::App& command, const std::string& path, std::vector<completed_command>& commands) {
  completed_command result{path, {}, {}};
  for (CLI::Option* const option : command.get_options([](const CLI::Option*) { return true; })) {
    completed_option one = described(*option);
    if (option->get_positional()) {
      std::vector<candidate>& choices = result.positionals.emplace_back();
      for (const std::string& choice : one.choices) choices.push_back({choice, {}});
    }
    if (!one.names.empty()) result.options.push_back(std::move(one));
  }
  const std::vector<CLI::App*> subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  if (!subcommands.empty()) {
    std::vector<candidate>& names = result.positionals.emplace_back();
    for (const CLI::App* const one : subcommands) names.push_back({one->get_name(), one->get_description()});
  }
  commands.push_back(std::move(result));
  for (CLI::App* const one : subcommands) collect(*one, path + '/' + one->get_name(), commands);
}

/// In single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string{"'\\''"} : std::string(1, letter);
  return result + "'";
}

/// `call(where, choices)` for each place that has choices; `where` is a pattern for "PATH OPTION" or "PATH POSITIONAL".
template <class Call>
void for_each_choice(const std::vector<completed_command>& commands, Call&& call) {
  for (const completed_command& command : commands) {
    for (const completed_option& option : command.options) {
      std::vector<candidate> choices;
      for (const std::string& choice : option.choices) choices.push_back({choice, {}});
      if (choices.empty()) continue;
      for (const std::string& name : option.names) call(command.path + ' ' + name, choices);
    }
    for (std::size_t index = 0; index < command.positionals.size(); ++index) {
      if (!command.positionals[index].empty()) call(command.path + ' ' + std::to_string(index), command.positionals[index]);
    }
  }
}

/// The patterns of a `case`, as one: "'/show'|'/report'".
std::string alternatives(const std::vector<std::string>& patterns) {
  std::string text;
  for (const std::string& pattern : patterns) {
    if (!text.empty()) text += '|';
    text += shell_quoted(pattern);
  }
  return text;
}

std::string paths_of(const std::vector<completed_command>& commands) {
  std::vector<std::string> paths;
  for (const completed_command& command : commands) {
    if (!command.path.empty()) paths.push_back(command.path);
  }
  return alternatives(paths);
}

/// The options with values, as patterns for "PATH OPTION".
std::string options_with_values(const std::vector<completed_command>& commands) {
  std::vector<std::string> found;
  for (const completed_command& command : commands) {
    for (const completed_option& option : command.options) {
      for (const std::string& name : option.names) {
        if (option.takes_value) found.push_back(command.path + ' ' + name);
      }
    }
  }
  return alternatives(found);
}

std::string bash_script(const std::vector<completed_command>& commands) {
  std::string text = R"(# Completion of memprof for bash, written by "memprof completion bash".
_memprof() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at= word= choices= positional=0 index
  # "--option=value" is three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((index = 1; index < COMP_CWORD; ++index)); do
    word=${COMP_WORDS[index]}
    case "$at/$word" in
      )" + paths_of(commands) +
                     R"() at+=/$word; continue ;;
    esac
    case "$at $word" in
      )" + options_with_values(commands) +
                     R"()
        [[ ${COMP_WORDS[index+1]} == = ]] && ((++index))
        ((++index)) ;;
      *' -'*) ;;
      *) ((++positional)) ;;
    esac
  done
  case "$at $before" in
)";
  const auto words = [](const std::vector<candidate>& choices) {
    std::string all;
    for (const candidate& one : choices) all += (all.empty() ? "" : " ") + one.word;
    return shell_quoted(all);
  };
  for_each_choice(commands, [&](const std::string& where, const std::vector<candidate>& choices) {
    if (where.find(" -") != std::string::npos) text += "    " + shell_quoted(where) + ") choices=" + words(choices) + " ;;\n";
  });
  text += "    " + options_with_values(commands) + R"() return ;;
  esac
  if [[ -z $choices && $current == -* ]]; then
    case "$at" in
)";
  for (const completed_command& command : commands) {
    std::vector<candidate> names;
    for (const completed_option& option : command.options) {
      for (const std::string& name : option.names) names.push_back({name, {}});
    }
    text += "      " + shell_quoted(command.path) + ") choices=" + words(names) + " ;;\n";
  }
  text += R"(    esac
  elif [[ -z $choices ]]; then
    case "$at $positional" in
)";
  for_each_choice(commands, [&](const std::string& where, const std::vector<candidate>& choices) {
    if (where.find(" -") == std::string::npos) text += "      " + shell_quoted(where) + ") choices=" + words(choices) + " ;;\n";
  });
  return text + R"(    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _memprof memprof
)";
}

std::string zsh_script(const std::vector<completed_command>& commands) {
  std::string text = R"(#compdef memprof
# Completion of memprof for zsh, written by "memprof completion zsh".
_memprof() {
  local current=${words[CURRENT]} before=${words[CURRENT-1]} at= word= positional=0 index
  local -a choices
  if [[ $current == --*=* ]]; then
    before=${current%%=*}
    compset -P '*='
    current=
  fi
  for ((index = 2; index < CURRENT; ++index)); do
    word=${words[index]}
    case "$at/$word" in
      )" + paths_of(commands) +
                     R"() at+=/$word; continue ;;
    esac
    case "$at $word" in
      )" + options_with_values(commands) +
                     R"() ((++index)) ;;
      *' -'*) ;;
      *) ((++positional)) ;;
    esac
  done
  case "$at $before" in
)";
  // In "word:meaning" a colon of the word's own is escaped.
  const auto entries = [](const std::vector<candidate>& choices) {
    std::string all;
    for (const candidate& one : choices) {
      std::string entry;
      for (const char letter : one.word) entry += letter == ':' ? std::string{"\\:"} : std::string(1, letter);
      all += (all.empty() ? "" : " ") + shell_quoted(one.meaning.empty() ? entry : entry + ':' + one.meaning);
    }
    return '(' + all + ')';
  };
  for_each_choice(commands, [&](const std::string& where, const std::vector<candidate>& choices) {
    if (where.find(" -") != std::string::npos) text += "    " + shell_quoted(where) + ") choices=" + entries(choices) + " ;;\n";
  });
  text += "    " + options_with_values(commands) + R"() _files; return ;;
  esac
  if (( ! $#choices )) && [[ $current == -* ]]; then
    case "$at" in
)";
  for (const completed_command& command : commands) {
    std::vector<candidate> names;
    for (const completed_option& option : command.options) {
      for (const std::string& name : option.names) names.push_back({name, option.meaning});
    }
    text += "      " + shell_quoted(command.path) + ") choices=" + entries(names) + " ;;\n";
  }
  text += R"(    esac
  elif (( ! $#choices )); then
    case "$at $positional" in
)";
  for_each_choice(commands, [&](const std::string& where, const std::vector<candidate>& choices) {
    if (where.find(" -") == std::string::npos) text += "      " + shell_quoted(where) + ") choices=" + entries(choices) + " ;;\n";
  });
  return text + R"(    esac
  fi
  if (( $#choices )); then
    _describe memprof choices
  else
    _files
  fi
}
if [[ $funcstack[1] == _memprof ]]; then
  _memprof "$@"
else
  compdef _memprof memprof
fi
)";
}

}  // namespace

void add_completion(CLI::App& program, int& status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand("completion", "print a completion script for bash or zsh");
  set_footer(command,
             "An installed memprof needs none: its packages bring both scripts. Otherwise: source <(memprof completion bash)",
             "the output cannot be written", "an argument is invalid");
  command.add_option("SHELL", *shell, "bash or zsh")->required()->check(one_of("shell", {"bash", "zsh"}));
  command.callback([shell, &program, &status] {
    std::vector<completed_command> commands;
    collect(program, {}, commands);
    status = print_whole("completion", *shell == "bash" ? bash_script(commands) : zsh_script(commands));
  });
}

}  // namespace memprof_tool
