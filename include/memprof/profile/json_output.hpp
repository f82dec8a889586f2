#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/reflect.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

/// @file
/// Writes profiles as JSON text without an intermediate document or nlohmann/json, in that library's layout (`dump(1)`).

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes JSON to a string, one line per value, so that line-based tools can compare two. The calls must come in an order that
/// forms a document; nothing is checked. Out of line, because a profile has hundreds of fields: inlined into each, the calls
/// would take longer to compile than to run.
class json_output {
 public:
  /// The document so far.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::string take() noexcept { return std::move(text_); }

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  /// Call before each element of an array.
  [[gnu::noinline]] void element() { next_line(); }
  /// Call before each value of an object.
  [[gnu::noinline]] void key(std::string_view name) {
    next_line();
    value(name);
    text_ += ": ";
  }

  [[gnu::noinline]] void null() { text_ += "null"; }
  [[gnu::noinline]] void value(bool truth) { text_ += truth ? "true" : "false"; }
  template <std::integral T>
  void value(T number) {
    if constexpr (std::signed_integral<T>) {
      integer(number);
    } else {
      natural(number);
    }
  }
  /// Writes the shortest text that reads back as the same number; null if it is not finite.
  [[gnu::noinline]] void value(double number) {
    if (!std::isfinite(number)) return null();
    const std::size_t begin = text_.size();
    append(number);
    // So that it reads back as a real number.
    if (text_.find_first_of(".e", begin) == std::string::npos) text_ += ".0";
  }
  /// Invalid UTF-8 becomes U+FFFD, once for each maximal part of a character (Unicode, chapter 3.9).
  [[gnu::noinline]] void value(std::string_view words) {
    text_ += '"';
    const char* next = words.data();
    const char* const end = next + words.size();
    while (next != end) {
      const char* const plain = skip_plain(next, end);
      text_.append(next, plain);
      next = plain;
      if (next != end) next = append_special(next, end);
    }
    text_ += '"';
  }

 private:
  [[gnu::noinline]] void integer(std::int64_t number) { append(number); }
  [[gnu::noinline]] void natural(std::uint64_t number) { append(number); }

  [[gnu::noinline]] void begin(char bracket) {
    text_ += bracket;
    ++depth_;
    is_empty_ = true;
  }

  [[gnu::noinline]] void end(char bracket) {
    --depth_;
    if (!is_empty_) break_line();
    text_ += bracket;
    is_empty_ = false;
  }

  void next_line() {
    if (!is_empty_) text_ += ',';
    is_empty_ = false;
    break_line();
  }

  void break_line() {
    text_ += '\n';
    text_.append(depth_, ' ');
  }

  template <class T>
  void append(T number) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }

  [[nodiscard]] static const char* skip_plain(const char* next, const char* end) noexcept {
    while (next != end && *next >= ' ' && *next <= '~' && *next != '"' && *next != '\\') ++next;
    return next;
  }

  /// Writes one character that needs an escape or is not ASCII; returns where the next begins.
  const char* append_special(const char* next, const char* end) {
    const auto first = static_cast<unsigned char>(*next);
    if (first >= 0x80) {
      const std::size_t length = sequence_length(next, end);
      if (is_complete(first, length)) {
        text_.append(next, length);
      } else {
        text_ += "\xEF\xBF\xBD";
      }
      return next + length;
    }
    switch (first) {
      case '"': text_ += "\\\""; break;
      case '\\': text_ += "\\\\"; break;
      case '\b': text_ += "\\b"; break;
      case '\f': text_ += "\\f"; break;
      case '\n': text_ += "\\n"; break;
      case '\r': text_ += "\\r"; break;
      case '\t': text_ += "\\t"; break;
      case 0x7F: text_ += '\x7F'; break;
      default: {
        constexpr char hexadecimal[] = "0123456789abcdef";
        text_ += "\\u00";
        text_ += hexadecimal[first >> 4];
        text_ += hexadecimal[first & 15];
      }
    }
    return next + 1;
  }

  [[nodiscard]] static bool is_complete(unsigned char first, std::size_t length) noexcept {
    if (first < 0xC2 || first > 0xF4) return false;
    return length == (first < 0xE0 ? 2U : first < 0xF0 ? 3U : 4U);
  }

  /// Length of the well-formed prefix of the sequence that starts with a byte above 0x7F; at least 1 (Unicode, table 3-7).
  [[nodiscard]] static std::size_t sequence_length(const char* next, const char* end) noexcept {
    const auto byte_at = [next](std::size_t index) { return static_cast<unsigned char>(next[index]); };
    const unsigned char first = byte_at(0);
    if (first < 0xC2 || first > 0xF4) return 1;
    const std::size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    const auto available = static_cast<std::size_t>(end - next);
    std::size_t length = 1;
    for (; length < wanted && length < available; ++length) {
      unsigned char least = 0x80;
      unsigned char greatest = 0xBF;
      if (length == 1) {
        if (first == 0xE0) least = 0xA0;
        if (first == 0xED) greatest = 0x9F;
        if (first == 0xF0) least = 0x90;
        if (first == 0xF4) greatest = 0x8F;
      }
      if (byte_at(length) < least || byte_at(length) > greatest) break;
    }
    return length;
  }

  std::string text_;
  std::size_t depth_ = 0;
  bool is_empty_ = true;
};

[[nodiscard]] inline constexpr bool is_nullable(const auto& names, std::string_view name) noexcept {
  for (const std::string_view nullable : names) {
    if (nullable == name) return true;
  }
  return false;
}

// `std::visit` would make a table of functions for each use.
inline void put_json(json_output& out, const fact_value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    out.value(*text);
  } else if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    out.value(*integer);
  } else if (const auto* const real = std::get_if<double>(&value)) {
    out.value(*real);
  } else {
    out.null();
  }
}

inline void put_json(json_output& out, const vector<fact_table>& tables) {
  out.begin_object();
  for (const fact_table& table : tables) {
    out.key(table.name);
    out.begin_array();
    for (const vector<fact_value>& values : table.rows) {
      out.element();
      out.begin_object();
      for (std::size_t column = 0; column < table.columns.size() && column < values.size(); ++column) {
        out.key(table.columns[column]);
        put_json(out, values[column]);
      }
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
}

/// Writes a field of any type: a struct as an object, a vector as an array, an enumeration as its name.
template <class T>
void put_json(json_output& out, const T& source) {
  if constexpr (reflected<T>) {
    out.begin_object();
    for_each_field(source, [&]<class Field>(std::string_view name, const Field& field) {
      out.key(name);
      if constexpr (std::same_as<Field, std::string>) {
        if (field.empty() && is_nullable(nullable_fields<T>, name)) return out.null();
      }
      put_json(out, field);
    });
    out.end_object();
  } else if constexpr (named_enumeration<T>) {
    out.value(to_string(source));
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    out.value(source);
  } else {
    out.begin_array();
    for (const auto& element : source) {
      out.element();
      put_json(out, element);
    }
    out.end_array();
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
