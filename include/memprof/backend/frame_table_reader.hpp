#pragma once

#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads unwind tables. Past the end, or after a fault, everything is 0.
class frame_table_reader {
 public:
  frame_table_reader(const unsigned char* begin, const unsigned char* end) noexcept : next_(begin), end_(end) {}

  template <class Number>
  [[nodiscard]] Number fixed() noexcept {
    Number value{};
    if (left() < sizeof value) return fail(), value;
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }
  [[nodiscard]] std::uint64_t number() noexcept { return leb128().value; }
  [[nodiscard]] std::int64_t signed_number() noexcept {
    const auto [value, bits, is_negative] = leb128();
    return static_cast<std::int64_t>(is_negative && bits < 64 ? value | ~std::uint64_t{0} << bits : value);
  }
  /// The next bytes, as a part of their own.
  [[nodiscard]] frame_table_reader part(std::uint64_t bytes) noexcept {
    if (bytes > left()) return fail(), frame_table_reader{end_, end_};
    next_ += bytes;
    return {next_ - bytes, next_};
  }
  void skip(std::uint64_t bytes) noexcept { (void)part(bytes); }
  void fail() noexcept {
    has_failed_ = true;
    next_ = end_;
  }

  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  [[nodiscard]] const unsigned char* position() const noexcept { return next_; }

 private:
  struct leb128_number {
    std::uint64_t value = 0;
    unsigned bits = 0;
    bool is_negative = false;
  };
  [[nodiscard]] leb128_number leb128() noexcept {
    leb128_number read;
    for (unsigned char byte = 0x80; (byte & 0x80) != 0; read.bits += 7) {
      byte = fixed<unsigned char>();
      if (read.bits < 64) read.value |= std::uint64_t{byte & 0x7FU} << read.bits;
      read.is_negative = (byte & 0x40) != 0;
    }
    return read;
  }

  const unsigned char* next_;
  const unsigned char* end_;
  bool has_failed_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
