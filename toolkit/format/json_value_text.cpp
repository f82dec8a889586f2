#include <memprof/config.hpp>
#include <memprof/profile/json_value.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/json_value_text.hpp>
#include <memprof/trace/fact_table.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string json_text_of(const json_value& value) {
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

void json_value_text::open(json_kind kind) {
  const bool is_object = kind == json_kind::object;
  value(is_object ? "{" : "[");
  brackets_ += is_object ? '}' : ']';
}

void json_value_text::close() {
  if (text_.size() <= max_fact_text) text_ += brackets_.back();
  brackets_.pop_back();
}

void json_value_text::key(std::string_view name) {
  std::string text;
  append_json_string(text, name);
  value(text + ':');
}

void json_value_text::value(std::string_view text) {
  if (text_.size() > max_fact_text) return;
  const bool is_first = text_.empty() || text_.back() == '{' || text_.back() == '[' || text_.back() == ':';
  if (!is_first) text_ += ',';
  text_ += text;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
