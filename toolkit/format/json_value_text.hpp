#pragma once

#include <memprof/profile/json_value.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// A value other than an array or object as JSON.
[[nodiscard]] std::string json_text_of(const json_value& value);

/// Reassembles an array or object from a parser's events, without spaces. A long text is cut, since it goes into a table of
/// facts.
class json_value_text {
 public:
  void open(json_kind kind);
  void close();
  void key(std::string_view name);
  void value(std::string_view text);
  /// The complete text; call it after the end of the value.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  std::string brackets_;  // brackets that close it
};

}  // namespace memprof::inline MEMPROF_ABI::detail
