#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

bool matches_glob(std::string_view glob, std::string_view name) {
  std::size_t at = 0;
  std::size_t next = 0;
  std::size_t star = std::string_view::npos;  // the last one, which may still match more
  std::size_t taken = 0;
  while (next < name.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      taken = next;
    } else if (at < glob.size() && glob[at] == name[next]) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      next = ++taken;
    } else {
      return false;
    }
  }
  return glob.substr(at).find_first_not_of('*') == std::string_view::npos;
}

std::string without_escapes(std::string_view path) {
  std::string plain;
  for (std::size_t index = 0; index < path.size(); ++index) {
    const bool is_escape = path[index] == '\\' && index + 1 < path.size() && (path[index + 1] == '/' || path[index + 1] == '\\');
    plain += path[is_escape ? ++index : index];
  }
  return plain;
}

bool matches_path(std::string_view pattern, const std::vector<std::string>& names, std::size_t first) {
  const std::size_t slash = pattern.find('/');
  const std::string_view glob = pattern.substr(0, slash);
  const bool is_last = slash == std::string_view::npos;
  const std::string_view rest = is_last ? std::string_view{} : pattern.substr(slash + 1);
  if (glob == "**") {
    if (is_last) return true;
    for (std::size_t skipped = first; skipped <= names.size(); ++skipped) {
      if (matches_path(rest, names, skipped)) return true;
    }
    return false;
  }
  if (first == names.size() || !matches_glob(glob, names[first])) return false;
  return is_last ? first + 1 == names.size() : matches_path(rest, names, first + 1);
}

}  // namespace detail

namespace detail {
namespace {

/// Whether libtorch gave the name: to an operator ("aten::mm") or a node of the backward pass ("MmBackward0").
bool is_torch_operator(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  const bool is_node = digits != std::string_view::npos && name.substr(0, digits + 1).ends_with("Backward");
  return is_node || name.find("::") != std::string_view::npos;
}

/// The number of a path's names that are scopes of the program, before libtorch's first operator.
std::size_t scope_depth(const std::vector<std::string>& path) {
  return static_cast<std::size_t>(std::find_if(path.begin(), path.end(), is_torch_operator) - path.begin());
}

/// The part that follows from the category alone: a parameter is one, whoever allocated it.
constexpr std::string_view part_of(category kind) noexcept {
  switch (kind) {
    case category::parameter: return "parameters";
    case category::gradient: return "gradients";
    case category::optimizer_state: return "optimizer state";
    case category::input: return "inputs";
    case category::kv_cache: return "kv cache";
    default: return {};
  }
}

}  // namespace

std::string with_folded_layers(std::string_view name) {
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  const auto is_letter = [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
  };
  std::string result;
  for (std::size_t index = 0; index < name.size();) {
    std::size_t end = index;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == index) {
      result += name[index++];
      continue;
    }
    if (index != 0 && is_letter(name[index - 1])) {
      result += name.substr(index, end - index);
    } else {
      result += '*';
    }
    index = end;
  }
  return result;
}

}  // namespace detail

operation_place place_of(const std::vector<std::string>& path, category kind, const std::vector<part_rule>& rules) {
  const std::size_t scopes = detail::scope_depth(path);
  const auto joined = [&](std::size_t count) {
    std::string text;
    for (std::size_t index = 0; index < std::min(count, path.size()); ++index) text += (index == 0 ? "" : "/") + path[index];
    return text.empty() ? std::string{outside_every_operation} : text;
  };
  operation_place place{{}, joined(scopes + 1)};
  for (const part_rule& rule : rules) {
    if (!detail::matches_path(rule.pattern, path)) continue;
    place.part = rule.part;
    return place;
  }
  place.part = detail::part_of(kind);
  if (!place.part.empty()) return place;
  for (const auto& [pattern, part] : known_parts) {
    if (!detail::matches_path(pattern, path)) continue;
    place.part = part;
    return place;
  }
  place.part = joined(scopes);
  return place;
}

}  // namespace memprof::inline MEMPROF_ABI
