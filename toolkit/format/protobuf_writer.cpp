#include <memprof/config.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

protobuf_message& protobuf_message::integer(std::uint32_t field, std::uint64_t value) {
  key(field, 0);
  varint(value);
  return *this;
}

protobuf_message& protobuf_message::fixed64(std::uint32_t field, std::uint64_t value) {
  key(field, 1);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
  return *this;
}

protobuf_message& protobuf_message::text(std::uint32_t field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

void protobuf_message::varint(std::uint64_t value) {
  unsigned char digits[max_varint_bytes];
  const unsigned char* const end = put_varint(digits, value);
  bytes_.append(reinterpret_cast<const char*>(digits), static_cast<std::size_t>(end - digits));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
