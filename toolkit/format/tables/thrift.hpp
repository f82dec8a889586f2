#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// A struct in Thrift's compact protocol, written field by field in ascending order
/// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
class thrift_struct {
 public:
  thrift_struct& number32(int field, std::int32_t value) { return number(field, value, kind::number32); }
  thrift_struct& number64(int field, std::int64_t value) { return number(field, value, kind::number64); }
  thrift_struct& text(int field, std::string_view value) {
    key(field, kind::binary);
    append_text(value);
    return *this;
  }
  thrift_struct& child(int field, const thrift_struct& value) {
    key(field, kind::structure);
    bytes_ += value.ended();
    return *this;
  }

  /// A list of `size` values, which the next calls append.
  thrift_struct& list_of_numbers(int field, std::size_t size) { return list(field, size, kind::number32); }
  thrift_struct& list_of_texts(int field, std::size_t size) { return list(field, size, kind::binary); }
  thrift_struct& list_of_structs(int field, std::size_t size) { return list(field, size, kind::structure); }
  thrift_struct& append_number(std::int32_t value) {
    append_varint(zigzag(value));
    return *this;
  }
  thrift_struct& append_text(std::string_view value) {
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  thrift_struct& append_bytes_of(std::string_view ended_struct) {
    bytes_ += ended_struct;
    return *this;
  }

  /// The bytes with the mark of the end.
  [[nodiscard]] std::string ended() const { return bytes_ + '\0'; }

 private:
  enum class kind : std::uint8_t { number32 = 5, number64 = 6, binary = 8, list = 9, structure = 12 };

  static constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void append_varint(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void key(int field, kind of) {
    bytes_ += static_cast<char>((field - last_) << 4 | static_cast<int>(of));
    last_ = field;
  }
  thrift_struct& number(int field, std::int64_t value, kind of) {
    key(field, of);
    append_varint(zigzag(value));
    return *this;
  }
  thrift_struct& list(int field, std::size_t size, kind of) {
    constexpr std::size_t long_form = 15;
    key(field, kind::list);
    bytes_ += static_cast<char>((size < long_form ? size : long_form) << 4 | static_cast<std::size_t>(of));
    if (size >= long_form) append_varint(size);
    return *this;
  }

  std::string bytes_;
  int last_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
