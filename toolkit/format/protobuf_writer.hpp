#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// A Protocol Buffers message, written field by field (https://protobuf.dev/programming-guides/encoding).
class protobuf_message {
 public:
  protobuf_message& integer(std::uint32_t field, std::uint64_t value);
  protobuf_message& integer(std::uint32_t field, std::int64_t value) { return integer(field, static_cast<std::uint64_t>(value)); }
  protobuf_message& fixed64(std::uint32_t field, std::uint64_t value);
  protobuf_message& text(std::uint32_t field, std::string_view value);
  protobuf_message& message(std::uint32_t field, const protobuf_message& value) { return text(field, value.bytes_); }
  template <class Integer>
  protobuf_message& packed(std::uint32_t field, const std::vector<Integer>& values) {
    protobuf_message list;
    for (const Integer value : values) list.varint(static_cast<std::uint64_t>(value));
    return message(field, list);
  }

  void clear() noexcept { bytes_.clear(); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t type) { varint(std::uint64_t{field} << 3 | type); }
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
