#pragma once

#include <memprof/profile/json_value.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/trace/fact_table.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// A value other than an array or object as JSON.
[[nodiscard]] inline std::string json_text_of(const json_value& value) {
  std::string out;
  switch (value.kind) {
    case json_kind::boolean: return value.truth ? "true" : "false";
    case json_kind::integer: return std::to_string(value.integer);
    case json_kind::natural: return std::to_string(value.natural);
    case json_kind::real: return std::string{value.text};
    case json_kind::string: append_json_string(out, value.text); return out;
    default: return "null";
  }
}

/// Reassembles an array or object from a parser's events, without spaces. A long text is cut, since it goes into a table of
/// facts.
class json_value_text {
 public:
  void open(json_kind kind) {
    const bool is_object = kind == json_kind::object;
    value(is_object ? "{" : "[");
    brackets_ += is_object ? '}' : ']';
  }
  void close() {
    if (text_.size() <= max_fact_text) text_ += brackets_.back();
    brackets_.pop_back();
  }
  void key(std::string_view name) {
    std::string text;
    append_json_string(text, name);
    value(text + ':');
  }
  void value(std::string_view text) {
    if (text_.size() > max_fact_text) return;
    const bool is_first = text_.empty() || text_.back() == '{' || text_.back() == '[' || text_.back() == ':';
    if (!is_first) text_ += ',';
    text_ += text;
  }
  /// The complete text; call it after the end of the value.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  std::string brackets_;  // brackets that close it
};

}  // namespace memprof::inline MEMPROF_ABI::detail
