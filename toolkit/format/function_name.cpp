#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string short_function_name(std::string_view name) {
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

bool is_library_function(std::string_view name) {
  const auto begins_with = [&](std::string_view part) { return name.starts_with(part); };
  const auto ends_with = [&](std::string_view part) { return name.ends_with(part); };
  constexpr std::array<std::string_view, 3> namespaces{"std::", "__gnu_cxx::", "__cxxabiv1::"};
  if (std::any_of(namespaces.begin(), namespaces.end(), begins_with)) return true;
  // Allocators are named after C's functions: `je_malloc`, `PyObject_Malloc`.
  constexpr std::array<std::string_view, 9> allocators{
      "malloc", "calloc", "realloc", "memalign", "aligned_alloc", "valloc", "operator new", "operator new[]", "c10::alloc_cpu"};
  if (std::any_of(allocators.begin(), allocators.end(), ends_with)) return true;
  constexpr std::array<std::string_view, 3> capitalized{"Malloc", "Calloc", "Realloc"};
  if (std::any_of(capitalized.begin(), capitalized.end(), ends_with)) return true;
  const std::size_t member = name.rfind("::");
  if (member == name.npos || name.find("lloc", member) == name.npos) return false;
  name = name.substr(0, member);
  constexpr std::array<std::string_view, 4> classes{"Allocator", "allocator", "allocator_traits", "memory_resource"};
  return std::any_of(classes.begin(), classes.end(), ends_with);
}

std::string frame_name(std::string_view function, std::string_view file, std::string_view line) {
  const std::size_t slash = file.find_last_of("/\\");
  if (slash != file.npos) file.remove_prefix(slash + 1);
  std::string text = short_function_name(function);
  if (file.empty() || file == "??") return text;
  text.append(" (").append(file);
  if (!line.empty()) text.append(":").append(line);
  return text += ')';
}

}  // namespace memprof::inline MEMPROF_ABI::detail
