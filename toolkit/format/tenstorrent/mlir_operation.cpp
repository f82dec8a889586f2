#include <memprof/config.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/mlir_operation.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

std::size_t end_of_bracket(std::string_view text, std::size_t begin) noexcept {
  std::size_t depth = 0;
  for (std::size_t index = begin; index < text.size(); ++index) {
    const char next = index + 1 < text.size() ? text[index + 1] : '\0';
    switch (text[index]) {
      case '"':
        for (++index; index < text.size() && text[index] != '"'; ++index) {
          if (text[index] == '\\') ++index;
        }
        break;
      case '<':
      case '(':
      case '[':
      case '{':
        if (next != '=') ++depth;
        break;
      case '>':
        if (next == '=' || (index != 0 && text[index - 1] == '-')) break;
        [[fallthrough]];
      case ')':
      case ']':
      case '}':
        if (depth != 0 && --depth == 0) return index + 1;
        break;
      default: break;
    }
  }
  return std::string_view::npos;
}

namespace {

constexpr bool is_opening_bracket(char character) noexcept {
  return character == '<' || character == '(' || character == '[' || character == '{';
}

/// The first occurrence of `wanted` outside all brackets and strings, from `begin` on, or `npos`.
constexpr std::size_t find_outside_brackets(std::string_view text, std::string_view wanted, std::size_t begin = 0) noexcept {
  for (std::size_t index = begin; index < text.size(); ++index) {
    if (text.substr(index).starts_with(wanted)) return index;
    if (is_opening_bracket(text[index])) {
      const std::size_t end = end_of_bracket(text, index);
      if (end == std::string_view::npos) return end;
      index = end - 1;
    } else if (text[index] == '"') {
      for (++index; index < text.size() && text[index] != '"'; ++index) {
        if (text[index] == '\\') ++index;
      }
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = find_outside_brackets(text, ",");
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

namespace {

/// Parses the text from `tensor<` to the first comma or the end.
mlir_tensor parse_mlir_tensor(std::string_view inner) {
  inner = trimmed(inner.substr(0, find_outside_brackets(inner, ",")));
  std::size_t end = 0;
  while (end < inner.size() && (is_digit(inner[end]) || inner[end] == '?' || inner[end] == '*')) {
    const std::size_t next = inner.find_first_not_of("0123456789?*", end);
    if (next == std::string_view::npos || inner[next] != 'x') break;
    end = next + 1;
  }
  return {std::string{inner.substr(0, end == 0 ? 0 : end - 1)}, std::string{inner.substr(end)}};
}

}  // namespace

std::vector<mlir_tensor> tensors_of_types(std::string_view types) {
  constexpr std::string_view head = "tensor<";
  std::vector<mlir_tensor> tensors;
  for (std::size_t at = types.find(head); at != std::string_view::npos; at = types.find(head, at)) {
    const std::size_t begin = at + head.size();
    const std::size_t end = end_of_bracket(types, begin - 1);
    if (end == std::string_view::npos) break;
    tensors.push_back(parse_mlir_tensor(types.substr(begin, end - 1 - begin)));
    at = end;
  }
  return tensors;
}

namespace {

/// The outermost name in the text between `loc(` and its end; for a place in a file, also the line and column. Empty if there is
/// none.
std::string parse_mlir_location(std::string_view inner) {
  const std::size_t begin = inner.find('"');
  if (begin == std::string_view::npos) return {};
  const std::size_t end = inner.find('"', begin + 1);
  std::string name{inner.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1)};
  if (end == std::string_view::npos) return name;
  const std::string_view rest = inner.substr(end + 1);
  return name.append(rest.substr(0, rest.starts_with(':') ? rest.find_first_not_of(":0123456789") : 0));
}

constexpr bool is_mlir_name(char character) noexcept {
  return is_letter(character) || is_digit(character) || character == '_' || character == '.' || character == '$';
}

}  // namespace

}  // namespace detail

std::optional<mlir_operation> parse_mlir_operation(std::string_view text) {
  using namespace detail;
  constexpr std::size_t npos = std::string_view::npos;
  mlir_operation found;
  text = trimmed(text);
  if (text.starts_with('%')) {
    const std::size_t equals = text.find('=');
    if (equals == npos) return std::nullopt;
    found.result = trimmed(text.substr(0, equals));
    text = trimmed(text.substr(equals + 1));
  }
  const bool is_quoted = text.starts_with('"');
  if (is_quoted) text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && is_mlir_name(text[end])) ++end;
  if (end == 0 || (is_quoted && !text.substr(end).starts_with('"'))) return std::nullopt;
  found.name = text.substr(0, end);
  text.remove_prefix(end + (is_quoted ? 1 : 0));
  if (!text.starts_with('(')) return std::nullopt;
  end = end_of_bracket(text, 0);
  for (const std::string_view input : split_outside_brackets(text.substr(1, end == npos ? end : end - 2)))
    found.inputs.emplace_back(input);
  text = end == npos ? std::string_view{} : trimmed(text.substr(end));
  if (text.starts_with("<{")) {
    end = end_of_bracket(text, 0);
    found.attributes = text.substr(2, end == npos ? end : end - 4);
    text = end == npos ? std::string_view{} : trimmed(text.substr(end));
  }
  const std::size_t loc = find_outside_brackets(text, "loc(");
  if (loc != npos) {
    end = end_of_bracket(text, loc + 3);
    found.loc = parse_mlir_location(text.substr(loc + 4, end == npos ? end : end - loc - 5));
  }
  const std::size_t colon = find_outside_brackets(text, ":");
  if (colon == npos || colon > loc) return found;
  const std::string_view types = trimmed(text.substr(colon + 1, loc == npos ? npos : loc - colon - 1));
  const std::size_t arrow = find_outside_brackets(types, " -> ");
  if (arrow == npos) return found;
  std::string_view inputs = trimmed(types.substr(0, arrow));
  if (inputs.starts_with('(') && inputs.ends_with(')')) inputs = inputs.substr(1, inputs.size() - 2);
  found.input_types = inputs;
  found.output_type = trimmed(types.substr(arrow + 4));
  found.input_tensors = tensors_of_types(found.input_types);
  found.output_tensors = tensors_of_types(found.output_type);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
