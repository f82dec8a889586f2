#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pytorch/pickle_writer.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

void pickle_writer::finish() {
  put(".");
  flush();
}

void pickle_writer::integer(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    put({"\x8a\x09", 2});  // with a byte for the sign
    little_endian(value, 8);
    put({"\0", 1});
  } else {
    integer(static_cast<std::int64_t>(value));
  }
}

void pickle_writer::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    put("K");
    little_endian(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value <= 0xFFFF) {
    put("M");
    little_endian(static_cast<std::uint64_t>(value), 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    put("J");
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    int size = 8;
    while (size > 1 && value >> (8 * size - 9) == value >> 63) --size;
    put("\x8a");
    little_endian(static_cast<std::uint64_t>(size), 1);
    little_endian(static_cast<std::uint64_t>(value), size);
  }
}

void pickle_writer::real(double value) {
  put("G");
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) buffer_ += static_cast<char>(bits >> shift);
}

void pickle_writer::text(std::string_view value) {
  std::string sound;
  append_utf8(sound, value);
  put(sound.size() <= 0xFF ? "\x8c" : "X");
  little_endian(sound.size(), sound.size() <= 0xFF ? 1 : 4);
  put(sound);
}

void pickle_writer::name(std::string_view value) {
  const auto [found, is_new] = names_.try_emplace(std::string{value}, 0);
  if (!is_new) return recall(found->second);
  text(value);
  found->second = memoize();
}

void pickle_writer::pair(std::int64_t first, std::int64_t second) {
  integer(first);
  integer(second);
  put("\x86");
}

pickle_writer::memo_id pickle_writer::memoize() {
  put("\x94");
  return memo_size_++;
}

void pickle_writer::recall(memo_id id) {
  put(id <= 0xFF ? "h" : "j");
  little_endian(id, id <= 0xFF ? 1 : 4);
}

void pickle_writer::put(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= std::size_t{64} * 1024) flush();
}

void pickle_writer::flush() {
  out_.write(buffer_);
  buffer_.clear();
}

void pickle_writer::little_endian(std::uint64_t value, int size) {
  for (int byte = 0; byte < size; ++byte) buffer_ += static_cast<char>(value >> (8 * byte));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
