#pragma once

#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/pytorch/pickle_value.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads a pickle of plain data: numbers, texts, lists, tuples, dictionaries (protocols 2 to 5). It executes nothing: an opcode
/// that names a class or calls a function ends the reading.
///
/// A pickle is a program for a stack machine, and this is one. Whenever items have been added to a list, the handler may take
/// them: it gets `appended(reader, list)`, after which it may `drop` what it no longer needs. A file thus takes memory only for
/// what the handler leaves, and 16 bytes for each object that the pickle memoizes. There is no recursion, every size is checked
/// against the rest of the file, what is not yet in a container is bounded, and a file that would take more than 16 times its
/// size is rejected.
template <class Handler>
class pickle_reader {
 public:
  using type = pickle_value::type;

  pickle_reader(byte_reader& in, Handler& handler) : in_(in), handler_(handler) {}

  /// Reads to the end. Returns false, with the reason in `fault`, if the pickle ends early or is invalid; everything complete up
  /// to then has been handed over.
  [[nodiscard]] bool read() {
    for (;;) {
      const std::uint64_t at = in_.offset();
      const int opcode = in_.next();
      if (opcode < 0) return fail("it ends at byte " + std::to_string(at) + ", before the end of the pickle");
      if (opcode == '.')
        return stack_.size() == 1 || fail("byte " + std::to_string(at) + ": the pickle ends with no value or more than one");
      if (kept_bytes_ > max_kept_bytes_)
        return fail("byte " + std::to_string(at) + ": its values take more memory than a snapshot of this size can need");
      if (stack_.size() > max_values || marks_.size() > max_values)
        return fail("byte " + std::to_string(at) + ": more than " + std::to_string(max_values) + " values are not yet in a list");
      if (step(static_cast<unsigned char>(opcode), at)) continue;
      if (fault_.empty())
        fault_ = in_.has_run_out() ? "it ends within the value at byte " + std::to_string(at)
                                   : "byte " + std::to_string(at) + ": not valid in a pickle of plain data";
      return false;
    }
  }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  /// The top-level value; call it after `read`.
  [[nodiscard]] pickle_value result() const noexcept { return stack_.empty() ? pickle_value{} : stack_.back(); }

  [[nodiscard]] std::string_view text(pickle_value value) const noexcept {
    return value.is(type::text) ? std::string_view{*texts_[value.index]} : std::string_view{};
  }
  /// The items of a list or tuple, or alternating keys and values of a dictionary; empty for anything else.
  [[nodiscard]] const std::vector<pickle_value>& items(pickle_value value) const noexcept {
    static const std::vector<pickle_value> none;
    const bool is_container = value.is(type::list) || value.is(type::tuple) || value.is(type::dictionary);
    return is_container ? containers_[value.index].items : none;
  }
  /// Releases a container's memory. Later references to it yield a `dropped` value with `tag`.
  void drop(pickle_value value, std::uint32_t tag = 0) {
    container& gone = containers_[value.index];
    if (gone.is_dropped) return;
    kept_bytes_ -= sizeof(container) + gone.items.size() * sizeof(pickle_value);
    gone.is_dropped = true;
    if (gone.memo != no_memo && gone.memo < memo_.size()) {
      memo_[gone.memo].kind = type::dropped;
      memo_[gone.memo].index = tag;
    }
    gone.memo = no_memo;
    gone.items = {};
    unused_.push_back(value.index);
  }
  /// Clears a list whose items have been taken.
  void clear(pickle_value list) {
    kept_bytes_ -= containers_[list.index].items.size() * sizeof(pickle_value);
    containers_[list.index].items = {};
  }

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

  bool fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  void push(type kind, std::int64_t value = 0) {
    pickle_value made;
    made.kind = kind;
    made.integer = value;
    stack_.push_back(made);
  }
  bool push_number(int size, bool is_signed) {
    std::uint64_t value = 0;
    if (!in_.next_number(value, size)) return false;
    push(type::integer, is_signed ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value));
    return true;
  }
  /// A little-endian two's-complement number. One of more than 64 bits is `too_large`.
  bool push_long(std::uint64_t size) {
    std::string bytes;
    if (!in_.next(bytes, size)) return false;
    if (bytes.empty()) return push(type::integer), true;
    const bool is_negative = (bytes.back() & 0x80) != 0;
    while (bytes.size() > 8 && bytes.back() == (is_negative ? '\xFF' : '\0')) bytes.pop_back();
    std::uint64_t value = is_negative ? ~std::uint64_t{0} : 0;
    for (std::size_t index = bytes.size(); index-- > 0 && bytes.size() <= 8;)
      value = value << 8 | static_cast<unsigned char>(bytes[index]);
    const bool fits = bytes.size() <= 8 && (value >> 63 != 0) == is_negative;
    push(fits ? type::integer : type::too_large, static_cast<std::int64_t>(value));
    return true;
  }
  bool push_text(int size_bytes) {
    std::uint64_t size = 0;
    std::string bytes;
    if (!in_.next_number(size, size_bytes) || !in_.next(bytes, size)) return false;
    // Many texts are equal without being the same Python object.
    const auto [found, is_new] = text_ids_.try_emplace(std::move(bytes), static_cast<std::uint32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(&found->first);
      constexpr std::size_t node_bytes = 96;  // per entry of the table, besides the text
      kept_bytes_ += found->first.size() + node_bytes;
    }
    push(type::text);
    stack_.back().index = found->second;
    return texts_.size() < no_memo;
  }
  /// A decimal number up to the end of the line, as in old protocols.
  bool push_line() {
    std::string line;
    for (int byte = in_.next(); byte != '\n'; byte = in_.next()) {
      if (byte < 0 || line.size() > 32) return false;
      line += static_cast<char>(byte);
    }
    if (line.ends_with('L')) line.pop_back();
    if (line == "00" || line == "01") return push(type::boolean, line[1] - '0'), true;
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (fault != std::errc{} || end != line.data() + line.size()) return false;
    push(type::integer, value);
    return true;
  }
  void push_container(type kind, std::vector<pickle_value> items = {}) {
    kept_bytes_ += sizeof(container) + items.size() * sizeof(pickle_value);
    push(kind);
    if (unused_.empty()) {
      stack_.back().index = static_cast<std::uint32_t>(containers_.size());
      containers_.push_back({std::move(items)});
    } else {
      stack_.back().index = unused_.back();
      containers_[unused_.back()] = {std::move(items)};
      unused_.pop_back();
    }
  }

  /// Pops everything above the last mark.
  bool pop_to_mark(std::vector<pickle_value>& items) {
    if (marks_.empty() || marks_.back() > stack_.size()) return false;
    items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  /// The part of the stack below the innermost mark, which must not be popped.
  [[nodiscard]] std::size_t floor() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  bool pop(std::size_t count, std::vector<pickle_value>& items) {
    if (stack_.size() < floor() + count) return false;
    items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return true;
  }
  bool make_tuple(std::size_t count) {
    std::vector<pickle_value> items;
    if (!pop(count, items)) return false;
    push_container(type::tuple, std::move(items));
    return true;
  }
  bool make_from_mark(type kind) {
    std::vector<pickle_value> items;
    if (!pop_to_mark(items)) return false;
    push_container(kind, std::move(items));
    return true;
  }
  bool add_to(type kind, const std::vector<pickle_value>& items) {
    if (stack_.size() <= floor() || !stack_.back().is(kind) || (kind == type::dictionary && items.size() % 2 != 0)) return false;
    const pickle_value whole = stack_.back();
    std::vector<pickle_value>& known = containers_[whole.index].items;
    known.insert(known.end(), items.begin(), items.end());
    kept_bytes_ += items.size() * sizeof(pickle_value);
    if (kind == type::list) handler_.appended(*this, whole);
    return true;
  }
  bool add_from_mark(type kind) {
    std::vector<pickle_value> items;
    return pop_to_mark(items) && add_to(kind, items);
  }
  bool add_last(type kind, std::size_t count) {
    std::vector<pickle_value> items;
    return pop(count, items) && add_to(kind, items);
  }

  bool memoize(std::uint64_t index) {
    // Python memoizes objects in turn, so no index can be much greater than the number of bytes read.
    if (stack_.size() <= floor() || index >= in_.offset()) return false;
    if (index >= memo_.size()) {
      kept_bytes_ += (index + 1 - memo_.size()) * sizeof(pickle_value);
      memo_.resize(index + 1);
    }
    memo_[index] = stack_.back();
    const bool is_container = stack_.back().is(type::list) || stack_.back().is(type::tuple) || stack_.back().is(type::dictionary);
    if (is_container) containers_[stack_.back().index].memo = static_cast<std::uint32_t>(index);
    memo_size_ = index + 1 > memo_size_ ? index + 1 : memo_size_;
    return true;
  }
  bool memoize_as(int size) {
    std::uint64_t index = 0;
    return in_.next_number(index, size) && memoize(index);
  }
  bool recall(int size) {
    std::uint64_t index = 0;
    if (!in_.next_number(index, size) || index >= memo_.size()) return false;
    stack_.push_back(memo_[index]);
    return true;
  }

  /// Whether the opcode memoizes the value on top of the stack.
  [[nodiscard]] static bool is_memoizing(unsigned char opcode) noexcept {
    return opcode == 0x94 || opcode == 'q' || opcode == 'r';
  }

  bool step(unsigned char opcode, std::uint64_t at) {
    if (is_memoizing(opcode) && is_memoizing(std::exchange(last_opcode_, opcode)))
      return fail("byte " + std::to_string(at) + ": memoizes an object twice, which no pickler does");
    last_opcode_ = opcode;
    std::uint64_t number = 0;
    std::string bytes;
    std::vector<pickle_value> items;
    switch (opcode) {
      case 0x80:
        if (!in_.next_number(number, 1)) return false;
        return (number >= 2 && number <= 5) || fail("unsupported pickle protocol " + std::to_string(number) +
                                                    "; expected 2 to 5: rewrite it with pickle.dump(snapshot, file, protocol=4)");
      case 0x95: return in_.next_number(number, 8);
      case '(': return marks_.push_back(stack_.size()), true;
      case 'N': return push(type::none), true;
      case 0x88: return push(type::boolean, 1), true;
      case 0x89: return push(type::boolean, 0), true;
      case 'K': return push_number(1, false);
      case 'M': return push_number(2, false);
      case 'J': return push_number(4, true);
      case 0x8A: return in_.next_number(number, 1) && push_long(number);
      case 0x8B: return in_.next_number(number, 4) && number <= INT32_MAX && push_long(number);
      case 'I':
      case 'L': return push_line();
      case 'G':
        for (int byte = 0; byte < 8; ++byte) {
          const int read = in_.next();
          if (read < 0) return false;
          number = number << 8 | static_cast<unsigned>(read);
        }
        push(type::real);
        stack_.back().real = std::bit_cast<double>(number);
        return true;
      case 0x8C:
      case 'U':
      case 'C': return push_text(1);
      case 'X':
      case 'T':
      case 'B': return push_text(4);
      case 0x8D:
      case 0x8E: return push_text(8);
      case ']': return push_container(type::list), true;
      case '}': return push_container(type::dictionary), true;
      case ')': return push_container(type::tuple), true;
      case 0x85: return make_tuple(1);
      case 0x86: return make_tuple(2);
      case 0x87: return make_tuple(3);
      case 't': return make_from_mark(type::tuple);
      case 'l': return make_from_mark(type::list);
      case 'd': return make_from_mark(type::dictionary);
      case 'a': return add_last(type::list, 1);
      case 'e': return add_from_mark(type::list);
      case 's': return add_last(type::dictionary, 2);
      case 'u': return add_from_mark(type::dictionary);
      case 0x94: return memoize(memo_size_);
      case 'q': return memoize_as(1);
      case 'r': return memoize_as(4);
      case 'h': return recall(1);
      case 'j': return recall(4);
      case '0': return pop(1, items);
      case '1': return pop_to_mark(items);
      case '2':
        if (stack_.size() <= floor()) return false;
        stack_.push_back(stack_.back());
        return true;
      case 'c':
      case 0x93:
      case 'R':
      case 'b':
      case 0x81:
      case 0x92:
      case 'i':
      case 'o':
      case 0x82:
      case 0x83:
      case 0x84:
      case 'P':
      case 'Q':
        return fail("byte " + std::to_string(at) + ": the pickle names a class or calls a function; only plain data is read");
      default: return false;
    }
  }

  byte_reader& in_;
  Handler& handler_;
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
