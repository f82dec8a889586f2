#include <memprof/config.hpp>
#include <memprof/toolkit/format/pytorch/pickle_reader.hpp>
#include <memprof/toolkit/format/pytorch/pickle_value.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Whether the opcode memoizes the value on top of the stack.
bool is_memoizing(unsigned char opcode) noexcept { return opcode == 0x94 || opcode == 'q' || opcode == 'r'; }

}  // namespace

bool pickle_reader::read() {
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

std::string_view pickle_reader::text(pickle_value value) const noexcept {
  return value.is(type::text) ? std::string_view{*texts_[value.index]} : std::string_view{};
}

const std::vector<pickle_value>& pickle_reader::items(pickle_value value) const noexcept {
  static const std::vector<pickle_value> none;
  const bool is_container = value.is(type::list) || value.is(type::tuple) || value.is(type::dictionary);
  return is_container ? containers_[value.index].items : none;
}

void pickle_reader::drop(pickle_value value, std::uint32_t tag) {
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

void pickle_reader::clear(pickle_value list) {
  kept_bytes_ -= containers_[list.index].items.size() * sizeof(pickle_value);
  containers_[list.index].items = {};
}

bool pickle_reader::fail(std::string fault) {
  fault_ = std::move(fault);
  return false;
}

void pickle_reader::push(type kind, std::int64_t value) {
  pickle_value made;
  made.kind = kind;
  made.integer = value;
  stack_.push_back(made);
}

bool pickle_reader::push_number(int size, bool is_signed) {
  std::uint64_t value = 0;
  if (!in_.next_number(value, size)) return false;
  push(type::integer, is_signed ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value));
  return true;
}

bool pickle_reader::push_long(std::uint64_t size) {
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

bool pickle_reader::push_text(int size_bytes) {
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

bool pickle_reader::push_line() {
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

void pickle_reader::push_container(type kind, std::vector<pickle_value> items) {
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

bool pickle_reader::pop_to_mark(std::vector<pickle_value>& items) {
  if (marks_.empty() || marks_.back() > stack_.size()) return false;
  items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return true;
}

bool pickle_reader::pop(std::size_t count, std::vector<pickle_value>& items) {
  if (stack_.size() < floor() + count) return false;
  items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return true;
}

bool pickle_reader::make_tuple(std::size_t count) {
  std::vector<pickle_value> items;
  if (!pop(count, items)) return false;
  push_container(type::tuple, std::move(items));
  return true;
}

bool pickle_reader::make_from_mark(type kind) {
  std::vector<pickle_value> items;
  if (!pop_to_mark(items)) return false;
  push_container(kind, std::move(items));
  return true;
}

bool pickle_reader::add_to(type kind, const std::vector<pickle_value>& items) {
  if (stack_.size() <= floor() || !stack_.back().is(kind) || (kind == type::dictionary && items.size() % 2 != 0)) return false;
  const pickle_value whole = stack_.back();
  std::vector<pickle_value>& known = containers_[whole.index].items;
  known.insert(known.end(), items.begin(), items.end());
  kept_bytes_ += items.size() * sizeof(pickle_value);
  if (kind == type::list) handler_.appended(*this, whole);
  return true;
}

bool pickle_reader::add_from_mark(type kind) {
  std::vector<pickle_value> items;
  return pop_to_mark(items) && add_to(kind, items);
}

bool pickle_reader::add_last(type kind, std::size_t count) {
  std::vector<pickle_value> items;
  return pop(count, items) && add_to(kind, items);
}

bool pickle_reader::memoize(std::uint64_t index) {
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

bool pickle_reader::memoize_as(int size) {
  std::uint64_t index = 0;
  return in_.next_number(index, size) && memoize(index);
}

bool pickle_reader::recall(int size) {
  std::uint64_t index = 0;
  if (!in_.next_number(index, size) || index >= memo_.size()) return false;
  stack_.push_back(memo_[index]);
  return true;
}

bool pickle_reader::step(unsigned char opcode, std::uint64_t at) {
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

}  // namespace memprof::inline MEMPROF_ABI::detail
