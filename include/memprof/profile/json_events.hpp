#pragma once

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_value.hpp>

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// @file
/// A JSON document as a parser delivers it, value by value, with no document in memory.

namespace memprof::inline MEMPROF_ABI::detail {

/// What the parser expected where it met something else. Its own messages quote the document and name parser internals.
[[nodiscard]] inline std::string_view expected_by_parser(std::string_view message) noexcept {
  constexpr std::array<std::array<std::string_view, 2>, 10> known{{
      {"ill-formed UTF-8", "expected UTF-8 in a string"},
      {"control character", "expected an escape such as \\n in place of a control character"},
      {"invalid string: missing closing quote", "expected a string's closing quotation mark"},
      {"invalid string: surrogate", "expected both surrogates of a character"},
      {"invalid string", "expected a valid JSON escape"},
      {"invalid number", "expected a digit"},
      {"while parsing object key", "expected a key in quotation marks"},
      {"while parsing object separator", "expected a colon after the key"},
      {"while parsing object", "expected a comma or a closing brace"},
      {"while parsing array", "expected a comma or a closing bracket"},
  }};
  if (message.ends_with("expected end of input")) return "expected nothing after the document";
  message = message.substr(0, message.find("; last read: "));  // that part quotes the document
  for (const auto& [part, expected] : known) {
    if (message.find(part) != message.npos) return expected;
  }
  return "expected a value";
}

/// A value's text for a message: the value itself, or "a string" and the like if it is long.
[[nodiscard]] inline std::string json_text(const json_value& value) {
  constexpr std::size_t longest = 60;
  const bool is_long = value.text.size() > longest;
  switch (value.kind) {
    case json_kind::null: return "null";
    case json_kind::boolean: return value.truth ? "true" : "false";
    case json_kind::integer: return std::to_string(value.integer);
    case json_kind::natural: return std::to_string(value.natural);
    case json_kind::real:
      if (is_long) return "a long number";
      return value.text.empty() ? nlohmann::ordered_json(value.real).dump() : std::string{value.text};
    case json_kind::string:
      if (is_long) return "a long string";
      return nlohmann::ordered_json(value.text).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    case json_kind::array: return "an array";
    case json_kind::object: break;
  }
  return "an object";
}

/// The callbacks of nlohmann/json's parser. A `Reader` has `take(json_value)`, `open(json_kind)` and `close()` for arrays and
/// objects, and `name(key)`; it may raise errors.
template <class Reader>
struct json_events {
  using number_integer_t = nlohmann::ordered_json::number_integer_t;
  using number_unsigned_t = nlohmann::ordered_json::number_unsigned_t;
  using number_float_t = nlohmann::ordered_json::number_float_t;
  using string_t = nlohmann::ordered_json::string_t;
  using binary_t = nlohmann::ordered_json::binary_t;

  Reader* reader;
  json_input* input = nullptr;     ///< where the strings come from, if their length is limited
  std::size_t fault_position = 0;  ///< number of bytes the parser had seen when it met invalid JSON
  std::string_view fault = {};     ///< what was expected there
  bool is_overflow = false;        ///< the fault is a number too large for any type

  bool null() { return take({.kind = json_kind::null}); }
  bool boolean(bool truth) { return take({.kind = json_kind::boolean, .truth = truth}); }
  bool number_integer(number_integer_t number) { return take({.kind = json_kind::integer, .integer = number}); }
  bool number_unsigned(number_unsigned_t number) { return take({.kind = json_kind::natural, .natural = number}); }
  bool number_float(number_float_t number, const string_t& text) {
    return take({.kind = json_kind::real, .real = number, .text = text});
  }
  bool string(string_t& text) { return take({.kind = json_kind::string, .text = text}); }
  bool binary(binary_t& /*bytes*/) { return false; }  // only occurs in binary formats
  bool start_object(std::size_t /*elements*/) { return open(json_kind::object); }
  bool start_array(std::size_t /*elements*/) { return open(json_kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& text) {
    end_token();
    reader->name(text);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& problem) {
    fault_position = position;
    is_overflow = problem.id == 406;  // "number overflow parsing ..."
    fault = is_overflow ? "expected a number below 1.8e308" : expected_by_parser(problem.what());
    return false;
  }

 private:
  /// After a string or a number the parser's buffer is empty; otherwise it keeps growing.
  void end_token() {
    if (input != nullptr) input->end_token();
  }
  bool take(const json_value& value) {
    if (value.kind != json_kind::null && value.kind != json_kind::boolean) end_token();
    reader->take(value);
    return true;
  }
  bool open(json_kind kind) {
    reader->open(kind);
    return true;
  }
  bool close() {
    reader->close();
    return true;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
