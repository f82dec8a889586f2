#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr std::size_t widest_class_list = 32;     ///< of template arguments, with its brackets
constexpr std::size_t widest_function_list = 24;  ///< the same of a function, whose arguments are mostly deduced
constexpr std::size_t widest_name = 120;
constexpr std::size_t deepest_list = 8;
constexpr std::string_view dots = "\u2026";
constexpr std::string_view folded_list = "<\u2026>";

/// The number of characters of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char each) { return (static_cast<unsigned char>(each) & 0xC0) != 0x80; }));
}

[[nodiscard]] bool is_of_word(char each) {
  return each == '_' || (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
}

/// The size of "operator<<" and its like, whose symbols are no brackets; 0 if none begins there.
[[nodiscard]] std::size_t operator_size(std::string_view text, std::size_t at) {
  constexpr std::string_view keyword = "operator";
  if (at > 0 && is_of_word(text[at - 1])) return 0;
  text.remove_prefix(at);
  if (!text.starts_with(keyword)) return 0;
  constexpr std::array<std::string_view, 14> symbols{
      "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">", ","};
  for (const std::string_view symbol : symbols) {
    if (text.substr(keyword.size()).starts_with(symbol)) return keyword.size() + symbol.size();
  }
  return 0;
}

/// Calls `visit(at, is_outside)` for each character that is not of an operator's name, until it returns false. `is_outside` says
/// whether it is within no bracket; a bracket itself is within.
template <class Visit>
void for_each_outside(std::string_view text, Visit&& visit) {
  std::string open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (const std::size_t size = operator_size(text, at); size != 0) {
      at += size - 1;
      continue;
    }
    const char each = text[at];
    const bool was_outside = open.empty();
    if (each == '(' || each == '<' || each == '[' || each == '{') {
      open += each;
    } else if (each == '>' && !(at > 0 && text[at - 1] == '-')) {  // else "->"
      if (!was_outside && open.back() == '<') open.pop_back();
    } else if (each == ')' || each == ']' || each == '}') {
      while (!open.empty() && open.back() == '<') open.pop_back();  // it was "less than"
      if (!open.empty()) open.pop_back();
    }
    if (!visit(at, was_outside && open.empty(), open.empty())) return;
  }
}

/// The size of what stands in brackets at the start of the text, with them; `npos` if it does not end.
[[nodiscard]] std::size_t bracketed_size(std::string_view text) {
  std::size_t size = text.npos;
  for_each_outside(text, [&](std::size_t at, bool, bool is_closed) {
    if (is_closed) size = at + 1;
    return !is_closed;
  });
  return size;
}

[[nodiscard]] std::vector<std::string_view> arguments_in(std::string_view list) {
  std::vector<std::string_view> found;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view each = list.substr(begin, end - begin);
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    found.push_back(each);
    begin = end + 1;
  };
  for_each_outside(list, [&](std::size_t at, bool is_outside, bool) {
    if (is_outside && list[at] == ',') add(at);
    return true;
  });
  add(list.size());
  return found;
}

/// With every outermost list of template arguments as `<...>`.
[[nodiscard]] std::string with_folded_lists(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t symbol = operator_size(text, at);
    const std::size_t size = text[at] == '<' ? bracketed_size(text.substr(at)) : text.npos;
    if (size != text.npos) {
      result += folded_list;
      at += size - 1;
    } else {
      result += text.substr(at, std::max<std::size_t>(symbol, 1));
      at += std::max<std::size_t>(symbol, 1) - 1;
    }
  }
  return result;
}

/// Whether a container or string that ends its arguments with this one need not have named it.
[[nodiscard]] bool is_default_argument(std::string_view owner, std::string_view argument) {
  constexpr std::array<std::string_view, 6> usual{"std::allocator<", "std::char_traits<", "std::less<",
                                                  "std::hash<",      "std::equal_to<",    "std::default_delete<"};
  if (std::any_of(usual.begin(), usual.end(), [&](std::string_view begin) { return argument.starts_with(begin); })) return true;
  if (owner == "std::stack" || owner == "std::queue") return argument.starts_with("std::deque<");
  return owner == "std::priority_queue" && argument.starts_with("std::vector<");
}

[[nodiscard]] std::size_t least_arguments(std::string_view owner) { return owner.ends_with("map") ? 2 : 1; }

/// "std::string" for "std::basic_string" with the argument "char"; empty if there is no such name.
[[nodiscard]] std::string alias_of(std::string_view owner, std::string_view argument) {
  constexpr std::string_view prefix = "std::basic_";
  if (!owner.starts_with(prefix)) return {};
  const std::string_view kind = argument == "char" ? "" : argument == "wchar_t" ? "w" : "?";
  if (kind == "?") return {};
  return "std::" + std::string{kind} + std::string{owner.substr(prefix.size())};
}

[[nodiscard]] bool is_operator(std::string_view function) {
  const std::size_t last = function.rfind("operator");
  return last != function.npos && function.find("::", last) == function.npos;
}

[[nodiscard]] std::string argument_list(const std::vector<std::string>& arguments) {
  std::string all = "<";
  for (const std::string& each : arguments) all.append(all.size() == 1 ? "" : ", ").append(each);
  const bool ends_in_symbol = is_operator(arguments.back()) && (all.ends_with('<') || all.ends_with("operator>"));
  return all.append(ends_in_symbol ? " >" : ">");
}

void add_list(std::string& text, std::string_view list, std::size_t depth);

/// A type or value among template arguments.
[[nodiscard]] std::string short_argument(std::string_view text, std::size_t depth) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits != 0 && text.find_first_not_of("ul", digits) == text.npos) return std::string{text.substr(0, digits)};
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t symbol = operator_size(text, at);
    const std::size_t size = symbol == 0 && text[at] == '<' ? bracketed_size(text.substr(at)) : text.npos;
    if (size != text.npos) {
      add_list(result, text.substr(at + 1, size - 2), depth + 1);
      at += size - 1;
    } else {
      result += text.substr(at, std::max<std::size_t>(symbol, 1));
      at += std::max<std::size_t>(symbol, 1) - 1;
    }
  }
  return result;
}

/// Adds a list of template arguments, without its brackets, as a person would write it.
void add_list(std::string& text, std::string_view list, std::size_t depth) {
  if (depth > deepest_list) {
    text += folded_list;
    return;
  }
  const std::size_t before = text.find_last_of(" (<,*&");
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  const std::string owner = text.substr(begin);
  std::vector<std::string> arguments;
  for (const std::string_view each : arguments_in(list)) arguments.push_back(short_argument(each, depth));
  while (arguments.size() > least_arguments(owner) && is_default_argument(owner, arguments.back())) arguments.pop_back();
  if (arguments.size() == 1) {
    if (const std::string alias = alias_of(owner, arguments[0]); !alias.empty()) {
      text.replace(begin, text.npos, alias);
      return;
    }
  }
  std::string whole = argument_list(arguments);
  if (width_of(whole) > widest_class_list) {
    for (std::string& each : arguments) each = with_folded_lists(each);
    whole = argument_list(arguments);
  }
  for (bool is_first = true; width_of(whole) > widest_class_list && arguments.size() > 1 + (is_first ? 0 : 1); is_first = false) {
    if (is_first) {
      arguments.back() = dots;
    } else {
      arguments.erase(arguments.end() - 2);
    }
    whole = argument_list(arguments);
  }
  text += width_of(whole) > widest_class_list ? folded_list : std::string_view{whole};
}

/// The size of a member function's qualifiers at the start of the text: " const" and its like.
[[nodiscard]] std::size_t qualifiers_size(std::string_view text) {
  std::size_t size = 0;
  for (bool is_found = true; is_found;) {
    is_found = false;
    for (const std::string_view word : {" const", " volatile", " &&", " &", " noexcept"}) {
      const std::string_view rest = text.substr(size);
      if (!rest.starts_with(word) || (rest.size() > word.size() && std::string_view{" :["}.find(rest[word.size()]) == rest.npos))
        continue;
      size += word.size();
      is_found = true;
      break;
    }
  }
  return size;
}

/// Without the inline namespaces of the standard libraries.
[[nodiscard]] std::string without_versions(std::string_view name) {
  std::string result{name};
  for (const std::string_view version : {"::__cxx11::", "::__1::"}) {
    for (std::size_t at = 0; (at = result.find(version, at)) != result.npos;) result.replace(at, version.size(), "::");
  }
  return result;
}

/// Reads a function's name from the left.
class function_reader {
 public:
  function_reader(std::string_view name, bool keeps_lists) : name_(name), keeps_lists_(keeps_lists) {}

  [[nodiscard]] std::string read() {
    while (at_ < name_.size() && step()) {
    }
    if (!keeps_lists_) return std::move(result_);
    if (result_.size() == list_end_ && is_left_out()) result_.resize(list_begin_);
    return width_of(result_) > widest_name ? with_folded_lists(result_) : std::move(result_);
  }

 private:
  /// Whether the arguments of the function itself say little.
  [[nodiscard]] bool is_left_out() const {
    const std::string_view list = std::string_view{result_}.substr(list_begin_);
    const std::string_view bare = std::string_view{result_}.substr(0, list_begin_);
    return width_of(list) > widest_function_list || list.find(dots) != list.npos || is_operator(bare) ||
           bare.starts_with("std::") || bare.starts_with("__gnu_cxx::");
  }

  /// Reads the next part; false if the rest says nothing.
  [[nodiscard]] bool step() {
    constexpr std::string_view anonymous = "(anonymous namespace)";
    const std::string_view rest = name_.substr(at_);
    const bool ended_parameters = std::exchange(after_parameters_, false);
    if (rest.starts_with(anonymous)) return take(anonymous.size());
    if (const std::size_t size = operator_size(name_, at_); size != 0) return take(size);
    switch (rest[0]) {
      case '(': after_parameters_ = true; return skip(bracketed_size(rest));
      case '<': return add_arguments(rest);
      case '[':
        if (rest.starts_with("[abi:")) return skip(bracketed_size(rest));
        break;
      case '{': ++braces_; break;
      case '}': --braces_; break;
      case ' ':
        if (braces_ > 0) break;
        if (rest.starts_with(" <") && is_operator(result_)) return skip(1);
        if (result_.ends_with("operator")) return take(std::min(rest.find_first_of("(<"), rest.size()));
        if (ended_parameters && qualifiers_size(rest) != 0) return skip(qualifiers_size(rest));
        if (result_.find("anonymous ") != result_.npos && result_.find('`') != result_.npos) break;
        // What came before was the return type, unless this ends the name: `f() [clone .part.0]`.
        if (rest.find_first_of("(:") == rest.npos || rest.starts_with(" [clone")) return false;
        result_.clear();
        return skip(1);
      case ')':
      case '>': return skip(1);  // of no bracket
      default: break;
    }
    return take(1);
  }
  [[nodiscard]] bool take(std::size_t size) {
    result_ += name_.substr(at_, size);
    return skip(size);
  }
  [[nodiscard]] bool skip(std::size_t size) {
    if (size > name_.size() - at_) return false;
    at_ += size;
    return true;
  }
  [[nodiscard]] bool add_arguments(std::string_view rest) {
    const std::size_t size = bracketed_size(rest);
    if (size == rest.npos) return false;
    while (result_.ends_with(' ')) result_.pop_back();  // "operator<< <char>"
    list_begin_ = result_.size();
    if (keeps_lists_) add_list(result_, rest.substr(1, size - 2), 1);
    list_end_ = result_.size() > list_begin_ && result_.ends_with('>') ? result_.size() : std::string::npos;
    return skip(size);
  }

  std::string_view name_;
  bool keeps_lists_;
  std::size_t at_ = 0;
  std::string result_;
  std::size_t list_begin_ = 0;
  std::size_t list_end_ = std::string::npos;
  int braces_ = 0;
  bool after_parameters_ = false;
};

[[nodiscard]] std::string read_function(std::string_view name, bool keeps_lists) {
  if (name.find('(') == name.npos && name.find("::") == name.npos) return std::string{name};
  const std::string plain = without_versions(name);
  std::string result = function_reader{plain, keeps_lists}.read();
  return result.empty() ? std::string{name} : result;
}

}  // namespace

std::string short_function_name(std::string_view name) { return read_function(name, true); }

std::string bare_function_name(std::string_view name) { return read_function(name, false); }

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
