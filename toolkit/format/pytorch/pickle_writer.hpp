#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes plain data as a Python pickle of protocol 4, using only opcodes known to PyTorch's memory_viz. Values are written in
/// order; those of a list or dictionary between `begin_items` and its end.
template <byte_sink Sink>
class pickle_writer {
 public:
  /// The number of a value that is written once and referred to later.
  using memo_id = std::uint32_t;

  explicit pickle_writer(Sink& out) : out_(out) { put("\x80\x04"); }

  /// Ends the pickle, which must have one value.
  void finish() {
    put(".");
    flush();
  }

  void none() { put("N"); }
  void boolean(bool value) { put(value ? "\x88" : "\x89"); }
  void integer(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      put({"\x8a\x09", 2});  // with a byte for the sign
      little_endian(value, 8);
      put({"\0", 1});
    } else {
      integer(static_cast<std::int64_t>(value));
    }
  }
  void integer(std::int64_t value) {
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
  void real(double value) {
    put("G");
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) buffer_ += static_cast<char>(bits >> shift);
  }
  /// A text that occurs once. Invalid UTF-8 is replaced.
  void text(std::string_view value) {
    std::string sound;
    append_utf8(sound, value);
    put(sound.size() <= 0xFF ? "\x8c" : "X");
    little_endian(sound.size(), sound.size() <= 0xFF ? 1 : 4);
    put(sound);
  }
  /// A text that may recur: later occurrences refer to the first.
  void name(std::string_view value) {
    const auto [found, is_new] = names_.try_emplace(std::string{value}, 0);
    if (!is_new) return recall(found->second);
    text(value);
    found->second = memoize();
  }

  void begin_list() { put("]"); }
  void begin_dictionary() { put("}"); }
  /// Begins the values of a list, or the keys and values of a dictionary. At most `max_items` until the end.
  void begin_items() { put("("); }
  void end_list_items() { put("e"); }
  void end_dictionary_items() { put("u"); }
  void pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    put("\x86");
  }

  /// Memoizes the value just written or begun.
  [[nodiscard]] memo_id memoize() {
    put("\x94");
    return memo_size_++;
  }
  void recall(memo_id id) {
    put(id <= 0xFF ? "h" : "j");
    little_endian(id, id <= 0xFF ? 1 : 4);
  }

  /// memory_viz passes the items of a list as arguments to a JavaScript function, which limits their number.
  static constexpr std::size_t max_items = 1000;

  /// Calls `write_item(index)` for each item of a list of `count`.
  template <class WriteItem>
  void list(std::size_t count, WriteItem&& write_item) {
    begin_list();
    for (std::size_t first = 0; first < count; first += max_items) {
      begin_items();
      for (std::size_t index = first; index < count && index < first + max_items; ++index) write_item(index);
      end_list_items();
    }
  }

 private:
  void put(std::string_view bytes) {
    buffer_.append(bytes);
    if (buffer_.size() >= std::size_t{64} * 1024) flush();
  }
  void flush() {
    out_.write(buffer_);
    buffer_.clear();
  }
  void little_endian(std::uint64_t value, int size) {
    for (int byte = 0; byte < size; ++byte) buffer_ += static_cast<char>(value >> (8 * byte));
  }

  Sink& out_;
  std::string buffer_;
  memo_id memo_size_ = 0;
  std::unordered_map<std::string, memo_id> names_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
