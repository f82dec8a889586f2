#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes JSON incrementally, formatted like Python's `json.dump(..., indent=2)`: each value on its own line, and no line ending
/// after the last. Characters beyond ASCII are not escaped.
template <byte_sink Sink>
class indented_json {
 public:
  explicit indented_json(Sink& out) : out_(out) {}

  void begin(char bracket) {
    next();
    text_ += bracket;
    ++depth_;
    is_empty_ = true;
  }
  void end(char bracket) {
    --depth_;
    if (!is_empty_) break_line();
    text_ += bracket;
    is_empty_ = false;
    flush();
  }
  void key(std::string_view name) {
    next();
    append_json_string(text_, name);
    text_ += ": ";
    follows_key_ = true;
  }

  void null() { put("null"); }
  void value(bool truth) { put(truth ? "true" : "false"); }
  template <std::integral T>
  void value(T number) {
    put(std::to_string(number));
  }
  /// The shortest text that reads back as the same number.
  void value(double number) {
    char digits[32];
    std::string text{digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    put(text);
  }
  void value(std::string_view words) {
    next();
    append_json_string(text_, words);
  }
  void value(const char* words) { value(std::string_view{words}); }
  /// Null if it is empty.
  void value_or_null(std::string_view words) { words.empty() ? null() : value(words); }

  template <class T>
  void field(std::string_view name, const T& content) {
    key(name);
    value(content);
  }

 private:
  void put(std::string_view text) {
    next();
    text_ += text;
  }
  /// Writes the separator before a value or a key.
  void next() {
    if (!follows_key_ && depth_ != 0) {
      if (!is_empty_) text_ += ',';
      break_line();
    }
    follows_key_ = false;
    is_empty_ = false;
  }
  void break_line() {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
  void flush() {
    out_.write(text_);
    text_.clear();
  }

  Sink& out_;
  std::string text_;
  std::size_t depth_ = 0;
  bool is_empty_ = true;
  bool follows_key_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
