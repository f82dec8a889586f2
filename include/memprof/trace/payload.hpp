#pragma once

#include <memprof/trace/varint.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Appends numbers and text to a record's payload.
class payload_writer {
 public:
  payload_writer& number(std::uint64_t value) {
    unsigned char bytes[max_varint_bytes];
    const unsigned char* const end = put_varint(bytes, value);
    text_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
    return *this;
  }
  payload_writer& signed_number(std::int64_t value) { return number(zigzag(value)); }
  payload_writer& text(std::string_view value) {
    number(value.size());
    text_.append(value);
    return *this;
  }
  payload_writer& real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) text_ += static_cast<char>(bits >> shift);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return text_; }

 private:
  std::string text_;
};

/// Reads them back. Past the end, or after a fault, everything is 0 or empty.
class payload_reader {
 public:
  explicit payload_reader(std::string_view payload) noexcept
      : next_(reinterpret_cast<const unsigned char*>(payload.data())), end_(next_ + payload.size()) {}

  [[nodiscard]] std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    const unsigned char* const behind = get_varint(next_, end_, value);
    if (behind == nullptr) return fail();
    next_ = behind;
    return value;
  }
  [[nodiscard]] std::int64_t signed_number() noexcept { return unzigzag(number()); }
  [[nodiscard]] std::string_view text() noexcept {
    const std::uint64_t size = number();
    if (size > left()) return fail(), std::string_view{};
    const std::string_view value{reinterpret_cast<const char*>(next_), static_cast<std::size_t>(size)};
    next_ += size;
    return value;
  }
  [[nodiscard]] double real() noexcept {
    if (left() < 8) return fail(), 0;
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{*next_++} << shift;
    return std::bit_cast<double>(bits);
  }
  [[nodiscard]] bool is_at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

 private:
  std::uint64_t fail() noexcept {
    has_failed_ = true;
    next_ = end_;
    return 0;
  }

  const unsigned char* next_;
  const unsigned char* end_;
  bool has_failed_ = false;
};

/// The payload of a name or a space: small, and built without heap memory.
class small_payload {
 public:
  small_payload& number(std::uint64_t value) noexcept {
    size_ = static_cast<std::size_t>(put_varint(bytes_ + size_, value) - bytes_);
    return *this;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  unsigned char bytes_[5 * max_varint_bytes];
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
