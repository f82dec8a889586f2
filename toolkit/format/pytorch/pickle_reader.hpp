#pragma once

#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/pytorch/pickle_value.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

class pickle_reader;

/// What takes the values of a pickle while it is read.
class pickle_handler {
 public:
  /// Called whenever items have been added to the list on top of the stack.
  virtual void appended(pickle_reader& from, pickle_value list) = 0;

 protected:
  ~pickle_handler() = default;
};

/// Reads a pickle of plain data: numbers, texts, lists, tuples, dictionaries (protocols 2 to 5). It executes nothing: an opcode
/// that names a class or calls a function ends the reading.
///
/// A pickle is a program for a stack machine, and this is one. Whenever items have been added to a list, the handler may take
/// them in `appended`, after which it may `drop` what it no longer needs. A file thus takes memory only for what the handler
/// leaves, and 16 bytes for each object that the pickle memoizes. There is no recursion, every size is checked against the rest
/// of the file, what is not yet in a container is bounded, and a file that would take more than 16 times its size is rejected.
class pickle_reader {
 public:
  using type = pickle_value::type;

  pickle_reader(byte_reader& in, pickle_handler& handler) : in_(in), handler_(handler) {}

  /// Reads to the end. Returns false, with the reason in `fault`, if the pickle ends early or is invalid; everything complete up
  /// to then has been handed over.
  [[nodiscard]] bool read();
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  /// The top-level value; call it after `read`.
  [[nodiscard]] pickle_value result() const noexcept { return stack_.empty() ? pickle_value{} : stack_.back(); }

  [[nodiscard]] std::string_view text(pickle_value value) const noexcept;
  /// The items of a list or tuple, or alternating keys and values of a dictionary; empty for anything else.
  [[nodiscard]] const std::vector<pickle_value>& items(pickle_value value) const noexcept;
  /// Releases a container's memory. Later references to it yield a `dropped` value with `tag`.
  void drop(pickle_value value, std::uint32_t tag = 0);
  /// Clears a list whose items have been taken.
  void clear(pickle_value list);

  // --- the place of a list, for handlers -----------------------------------------------------------------------------

  /// The stack from the bottom: unfinished containers and their future items.
  [[nodiscard]] const std::vector<pickle_value>& stack() const noexcept { return stack_; }
  /// The positions on the stack where the items of unfinished containers begin.
  [[nodiscard]] const std::vector<std::size_t>& marks() const noexcept { return marks_; }

 private:
  static constexpr std::uint32_t no_memo = 0xFFFF'FFFF;
  static constexpr std::size_t max_values = 1 << 20;  // Python appends a thousand at a time

  struct container {
    std::vector<pickle_value> items;
    std::uint32_t memo = no_memo;
    bool is_dropped = false;
  };

  bool fail(std::string fault);

  void push(type kind, std::int64_t value = 0);
  bool push_number(int size, bool is_signed);
  /// A little-endian two's-complement number. One of more than 64 bits is `too_large`.
  bool push_long(std::uint64_t size);
  bool push_text(int size_bytes);
  /// A decimal number up to the end of the line, as in old protocols.
  bool push_line();
  void push_container(type kind, std::vector<pickle_value> items = {});

  /// Pops everything above the last mark.
  bool pop_to_mark(std::vector<pickle_value>& items);
  /// The part of the stack below the innermost mark, which must not be popped.
  [[nodiscard]] std::size_t floor() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  bool pop(std::size_t count, std::vector<pickle_value>& items);
  bool make_tuple(std::size_t count);
  bool make_from_mark(type kind);
  bool add_to(type kind, const std::vector<pickle_value>& items);
  bool add_from_mark(type kind);
  bool add_last(type kind, std::size_t count);

  bool memoize(std::uint64_t index);
  bool memoize_as(int size);
  bool recall(int size);

  bool step(unsigned char opcode, std::uint64_t at);

  byte_reader& in_;
  pickle_handler& handler_;
  std::uint64_t max_kept_bytes_ = (std::uint64_t{16} << 20) + 16 * in_.size();
  std::uint64_t kept_bytes_ = 0;  // everything except the stack
  unsigned char last_opcode_ = 0;
  std::string fault_;
  std::vector<pickle_value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<container> containers_;
  std::vector<std::uint32_t> unused_;
  std::unordered_map<std::string, std::uint32_t> text_ids_;
  std::vector<const std::string*> texts_;  // the table's keys, whose addresses are stable
  std::deque<pickle_value> memo_;          // a deque, so that growing copies nothing
  std::uint64_t memo_size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
