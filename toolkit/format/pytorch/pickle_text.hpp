#pragma once

#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pytorch/pickle_value.hpp>
#include <memprof/trace/fact_table.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

template <class Reader>
void append_pickle_json(const Reader& from, pickle_value value, int depth, std::string& out) {
  using type = pickle_value::type;
  constexpr int deepest = 8;  // a list in a hostile pickle may contain itself, even more than once
  if (out.size() > max_fact_text) return;
  const bool is_dictionary = value.is(type::dictionary);
  const std::vector<pickle_value>& items = from.items(value);
  const std::size_t step = is_dictionary ? 2 : 1;
  switch (value.kind) {
    case type::text: return append_json_string(out, from.text(value));
    case type::integer: out += std::to_string(value.integer); return;
    case type::boolean: out += value.integer != 0 ? "true" : "false"; return;
    case type::real: {
      std::array<char, 32> digits{};
      const std::string_view text{digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value.real).ptr};
      out += text;
      if (text.find_first_of(".en") == text.npos) out += ".0";
      return;
    }
    case type::list:
    case type::tuple:
    case type::dictionary:
      out += is_dictionary ? '{' : '[';
      for (std::size_t index = 0; index + step <= items.size() && depth < deepest; index += step) {
        if (index != 0) out += ',';
        append_pickle_json(from, items[index], depth + 1, out);
        if (is_dictionary) append_pickle_json(from, items[index + 1], depth + 1, out += ':');
      }
      out += is_dictionary ? '}' : ']';
      return;
    default: out += "null"; return;
  }
}

/// A value of a pickle: a text unchanged, anything else as JSON. Long values are cut, since they go into a table of facts.
template <class Reader>
[[nodiscard]] std::string text_of_pickle(const Reader& from, pickle_value value) {
  std::string out;
  if (value.is(pickle_value::type::text)) return std::string{from.text(value)};
  append_pickle_json(from, value, 0, out);
  return out;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
