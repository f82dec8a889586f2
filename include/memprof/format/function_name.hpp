#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// How readers of other tools' recordings name operations after stack frames.

namespace memprof::inline MEMPROF_ABI::detail {

/// The name of a C++ function without its arguments, template arguments and return type: `at::_ops::add_Tensor::call`. Python
/// names stay as they are.
[[nodiscard]] inline std::string short_function_name(std::string_view name) {
  constexpr std::string_view anonymous = "(anonymous namespace)";
  constexpr std::string_view keyword = "operator";
  if (name.find('(') == name.npos && name.find("::") == name.npos) return std::string{name};
  std::string result;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_after_operator = depth == 0 && result.ends_with(keyword);
    if (depth == 0 && name.substr(at).starts_with(anonymous)) {
      result += anonymous;
      at += anonymous.size() - 1;
    } else if (is_after_operator && name.substr(at).starts_with("()")) {
      result += "()";
      ++at;
    } else if (is_after_operator && name[at] == ' ') {  // a conversion, or `operator new`
      while (at < name.size() && name[at] != '(' && name[at] != '<') result += name[at++];
      --at;
    } else if (is_after_operator && (name[at] == '<' || name[at] == '>')) {
      while (at < name.size() && name[at] != '(') result += name[at++];
      --at;
    } else if (name[at] == '(' || name[at] == '<') {
      ++depth;
    } else if (name[at] == ')' || name[at] == '>') {
      depth -= depth == 0 ? 0 : 1;
    } else if (depth == 0 && name[at] == ' ' && result.find("anonymous ") == result.npos) {
      // What came before was the return type, unless this ends the arguments: `f() const`.
      if (name.substr(at + 1).find_first_of("(:") == name.npos) break;
      result.clear();
    } else if (depth == 0) {
      result += name[at];
    }
  }
  return result.empty() ? std::string{name} : result;
}

/// The operation of a stack frame: `function (file:line)`, with the file's base name and a short function name. An empty file and
/// "??" are left out.
[[nodiscard]] inline std::string frame_name(std::string_view function, std::string_view file, std::string_view line) {
  const std::size_t slash = file.find_last_of("/\\");
  if (slash != file.npos) file.remove_prefix(slash + 1);
  std::string text = short_function_name(function);
  if (file.empty() || file == "??") return text;
  text.append(" (").append(file);
  if (!line.empty()) text.append(":").append(line);
  return text += ')';
}

}  // namespace memprof::inline MEMPROF_ABI::detail
