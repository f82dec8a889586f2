#pragma once

#include <memprof/toolkit/format/json_text.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Values as pie's memory profiler writes them into session profiles: megabytes, times, shapes.

namespace memprof::inline MEMPROF_ABI::detail {

/// Appends a JSON object to a text, key by key.
class json_object {
 public:
  explicit json_object(std::string& out) : out_(out) { out_ += '{'; }
  json_object(const json_object&) = delete;
  json_object& operator=(const json_object&) = delete;
  ~json_object() { out_ += '}'; }

  /// Begins a value; the caller appends it.
  std::string& key(std::string_view name);
  void text(std::string_view name, std::string_view value) { append_json_string(key(name), value); }
  void null(std::string_view name) { key(name) += "null"; }
  void boolean(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  template <std::integral T>
  void number(std::string_view name, T value) {
    key(name) += std::to_string(value);
  }
  /// The shortest text that reads back as the same number.
  void number(std::string_view name, double value);
  /// MB of 2^20 bytes, as a number that is exact below 2^53 bytes.
  void megabytes(std::string_view name, std::int64_t bytes) { number(name, static_cast<double>(bytes) / (1 << 20)); }

 private:
  std::string& out_;
  bool is_empty_ = true;
};

/// Appends the elements of a JSON array, one after the other.
class json_array {
 public:
  explicit json_array(std::string& out) : out_(out) { out_ += '['; }
  json_array(const json_array&) = delete;
  json_array& operator=(const json_array&) = delete;
  ~json_array() { out_ += ']'; }

  std::string& element();

 private:
  std::string& out_;
  bool is_empty_ = true;
};

/// "2025-01-13T10:29:45.250000+00:00": the format of Python's `datetime.isoformat`, in UTC.
[[nodiscard]] std::string iso_time(std::int64_t unix_ns);

/// Appends "[65, 128]" as an array of numbers, an empty text as null, and anything else as a string.
void append_shape(std::string& out, std::string_view shape);

/// Appends "[8], [4, 2]" as an array of shapes; otherwise as `append_shape`.
void append_shapes(std::string& out, std::string_view shapes);

/// "float32" as "torch.float32"; qualified names are unchanged.
[[nodiscard]] std::string torch_dtype(std::string_view dtype);

}  // namespace memprof::inline MEMPROF_ABI::detail
