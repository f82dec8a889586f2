#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes plain data as a Python pickle of protocol 4, using only opcodes known to PyTorch's memory_viz. Values are written in
/// order; those of a list or dictionary between `begin_items` and its end.
class pickle_writer {
 public:
  /// The number of a value that is written once and referred to later.
  using memo_id = std::uint32_t;

  explicit pickle_writer(byte_sink_view out) : out_(out) { put("\x80\x04"); }

  /// Ends the pickle, which must have one value.
  void finish();

  void none() { put("N"); }
  void boolean(bool value) { put(value ? "\x88" : "\x89"); }
  void integer(std::uint64_t value);
  void integer(std::int64_t value);
  void real(double value);
  /// A text that occurs once. Invalid UTF-8 is replaced.
  void text(std::string_view value);
  /// A text that may recur: later occurrences refer to the first.
  void name(std::string_view value);

  void begin_list() { put("]"); }
  void begin_dictionary() { put("}"); }
  /// Begins the values of a list, or the keys and values of a dictionary. At most `max_items` until the end.
  void begin_items() { put("("); }
  void end_list_items() { put("e"); }
  void end_dictionary_items() { put("u"); }
  void pair(std::int64_t first, std::int64_t second);

  /// Memoizes the value just written or begun.
  [[nodiscard]] memo_id memoize();
  void recall(memo_id id);

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
  void put(std::string_view bytes);
  void flush();
  void little_endian(std::uint64_t value, int size);

  byte_sink_view out_;
  std::string buffer_;
  memo_id memo_size_ = 0;
  std::unordered_map<std::string, memo_id> names_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
