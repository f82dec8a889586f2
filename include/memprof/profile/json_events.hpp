#pragma once

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_value.hpp>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

/// @file
/// A JSON document as a parser meets it, value by value: no document is in memory.

namespace memprof::inline MEMPROF_ABI::detail {

/// What nlohmann/json's parser calls. A `Reader` has `take(json_value)`, `open(json_kind)` and `close()` of arrays and objects,
/// and `name(key)`; it may raise errors.
template <class Reader>
struct json_events {
  using number_integer_t = nlohmann::ordered_json::number_integer_t;
  using number_unsigned_t = nlohmann::ordered_json::number_unsigned_t;
  using number_float_t = nlohmann::ordered_json::number_float_t;
  using string_t = nlohmann::ordered_json::string_t;
  using binary_t = nlohmann::ordered_json::binary_t;

  Reader* reader;
  json_input* input = nullptr;     ///< where the texts come from, if their length has a limit
  std::size_t fault_position = 0;  ///< how many bytes the parser had seen when it met what is not JSON
  std::string fault = {};

  bool null() { return take({.kind = json_kind::null}); }
  bool boolean(bool truth) { return take({.kind = json_kind::boolean, .truth = truth}); }
  bool number_integer(number_integer_t number) { return take({.kind = json_kind::integer, .integer = number}); }
  bool number_unsigned(number_unsigned_t number) { return take({.kind = json_kind::natural, .natural = number}); }
  bool number_float(number_float_t number, const string_t& text) {
    return take({.kind = json_kind::real, .real = number, .text = text});
  }
  bool string(string_t& text) { return take({.kind = json_kind::string, .text = text}); }
  bool binary(binary_t& /*bytes*/) { return false; }  // only in formats other than text
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
    fault = problem.what();
    // "[json.exception.parse_error.101] parse error at ...": the part in brackets is of no use here.
    if (const std::size_t end = fault.find("] "); end != std::string::npos) fault.erase(0, end + 2);
    // It ends with what was read last, which may be anything of any length.
    constexpr std::size_t longest = 200;
    if (fault.size() > longest) fault.replace(longest, std::string::npos, "...");
    return false;
  }

 private:
  /// After a text or a number the parser's buffer is empty; it keeps all else.
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
