#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// @file
/// The bytes of a saved state (docs/trace_format.md). A function template that takes a `state_writer` or a `state_reader` defines
/// the order of the parts once, for both.

namespace memprof::inline MEMPROF_ABI::detail {

/// Revision of the saved states that memprof writes; it also reads earlier ones, which lack the later sections. Sections of other
/// kinds come after the known ones.
inline constexpr std::uint32_t state_revision = 4;

/// The sections of a saved state, in this order; those for a space and its blocks occur once per space.
enum class state_section : std::uint8_t {
  operations = 1,    ///< the tree of operations
  ledger,            ///< the ledger's state besides its spaces and threads
  space,             ///< a space's state besides its live blocks
  blocks,            ///< the live blocks of a space
  threads,           ///< threads and their open operations
  thread_usage,      ///< what threads and operations have done so far
  checkpoints,       ///< the kept checkpoints
  memories,          ///< joint peaks of memories shared by several spaces
  step_ends,         ///< what owners had at the ends of steps; since revision 2
  adoptions,         ///< which threads work for another one's operation; since revision 3, like the next
  inferred,          ///< what operations have allocated by inference
  freed_categories,  ///< what was live at a peak and is freed, by category; since revision 4
};

/// Appends numbers to a saved state, in pages that the hooks do not see.
class state_writer {
 public:
  static constexpr bool reads = false;

  explicit state_writer(page_array<unsigned char>& bytes) noexcept : bytes_(bytes) { bytes_.clear(); }

  /// An integer as a varint; zigzag if signed.
  template <class T>
  void number(const T& value) noexcept {
    static_assert(std::is_integral_v<T>);
    if (!make_room(max_varint_bytes)) return;
    unsigned char* const next = bytes_.data() + used_;
    if constexpr (std::is_signed_v<T>) {
      used_ += static_cast<std::size_t>(put_varint(next, zigzag(value)) - next);
    } else {
      used_ += static_cast<std::size_t>(put_varint(next, value) - next);
    }
  }
  template <class... T>
  void numbers(const T&... values) noexcept {
    (number(values), ...);
  }
  /// `amounts` are never negative, `changes` may be: see `state_reader`.
  template <class... T>
  void amounts(const T&... values) noexcept {
    (number(values), ...);
  }
  template <class... T>
  void changes(const T&... values) noexcept {
    (number(values), ...);
  }
  void totals(const std::int64_t& value) noexcept { number(value); }
  /// The number of rows, then each row.
  template <class Rows, class Each>
  void rows(const Rows& rows, Each&& each) noexcept {
    number(rows.size());
    for (const auto& row : rows) each(row);
  }
  void require(bool) const noexcept {}
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

  /// A section: one byte for its kind, and four for the length of what `fill` writes.
  template <class Fill>
  void section(state_section kind, Fill&& fill) noexcept {
    if (!make_room(section_header)) return;
    bytes_[used_] = static_cast<unsigned char>(kind);
    used_ += section_header;
    const std::size_t begin = used_;
    fill();
    if (used_ - begin > std::numeric_limits<std::uint32_t>::max()) has_failed_ = true;
    if (has_failed_) return;
    for (std::size_t byte = 0; byte < 4; ++byte)
      bytes_[begin - 4 + byte] = static_cast<unsigned char>((used_ - begin) >> (8 * byte));
  }

  /// Ends the state. False, with the bytes unusable, if the system had no memory.
  [[nodiscard]] bool finish() noexcept { return !has_failed_ && bytes_.resize(used_); }

 private:
  static constexpr std::size_t section_header = 5;

  [[nodiscard]] bool make_room(std::size_t size) noexcept {
    if (bytes_.size() - used_ >= size) return true;
    has_failed_ = has_failed_ || !bytes_.resize(bytes_.size() + (bytes_.size() < 65536 ? 65536 : bytes_.size()));
    return !has_failed_;
  }

  page_array<unsigned char>& bytes_;
  std::size_t used_ = 0;
  bool has_failed_ = false;
};

/// Reads back the numbers of a saved state. Accepts arbitrary bytes: after the first fault, every number is 0.
///
/// Amounts and changes are limited, so that arithmetic with them cannot overflow: larger ones are a fault.
class state_reader {
 public:
  static constexpr bool reads = true;
  /// Greatest amount, and the most that may be added to one later. A space's totals may be twice as large.
  static constexpr std::int64_t greatest = std::int64_t{1} << 61;

  state_reader(const unsigned char* begin, std::size_t size) noexcept : next_(begin), end_(begin + size) {}

  template <class T>
  void number(T& value) noexcept {
    static_assert(std::is_integral_v<T>);
    std::uint64_t read = 0;
    const unsigned char* const behind = get_varint(next_, end_, read);
    if (behind == nullptr) {
      value = 0;
      return fail();
    }
    next_ = behind;
    if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(unzigzag(read));
      if (value != unzigzag(read)) fail();
    } else {
      value = static_cast<T>(read);
      if (value != read) fail();
    }
    if (has_failed_) value = 0;
  }
  template <class... T>
  void numbers(T&... values) noexcept {
    (number(values), ...);
  }
  template <class... T>
  void amounts(T&... values) noexcept {
    (amount(values), ...);
  }
  template <class... T>
  void changes(T&... values) noexcept {
    (change(values), ...);
  }
  void totals(std::int64_t& value) noexcept {
    number(value);
    if (value >= 0 && value <= 2 * greatest) return;
    value = 0;
    fail();
  }
  template <class Rows, class Each>
  void rows(Rows& rows, Each&& each) noexcept {
    std::size_t count = 0;
    number(count);
    // A row takes at least a byte, so that a false count costs no memory.
    if (count > left() || !rows.resize(count)) fail();
    for (std::size_t index = 0; index < rows.size() && !has_failed_; ++index) each(rows[index]);
    if (has_failed_) rows.clear();
  }
  void require(bool is_sound) noexcept {
    if (!is_sound) fail();
  }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  [[nodiscard]] bool is_at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }

  /// The kind of the next section; no valid kind at the end.
  [[nodiscard]] state_section next_section() const noexcept { return static_cast<state_section>(is_at_end() ? 0 : *next_); }

  /// Reads the next section, which must have that kind and be consumed completely.
  template <class Fill>
  void section(state_section kind, Fill&& fill) noexcept {
    const unsigned char* const whole_end = end_;
    enter(kind);
    if (!has_failed_) fill();
    require(is_at_end());
    end_ = whole_end;
    if (has_failed_) next_ = end_;
  }
  void skip_section() noexcept {
    section(next_section(), [&] { next_ = end_; });
  }

 private:
  void enter(state_section kind) noexcept {
    constexpr std::size_t header = 5;
    if (left() < header || next_section() != kind) return fail();
    std::size_t size = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) size |= std::size_t{next_[1 + byte]} << (8 * byte);
    next_ += header;
    if (size > left()) return fail();
    end_ = next_ + size;
  }
  template <class T>
  void amount(T& value) noexcept {
    number(value);
    if (value < 0 || static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(greatest)) {
      value = 0;
      fail();
    }
  }
  void change(std::int64_t& value) noexcept {
    number(value);
    if (value > greatest || value < -greatest) {
      value = 0;
      fail();
    }
  }
  void fail() noexcept {
    has_failed_ = true;
    next_ = end_;
  }

  const unsigned char* next_;
  const unsigned char* end_;
  bool has_failed_ = false;
};

/// Checks amounts that are summed elsewhere: together, too, they may not exceed twice the greatest.
class state_sum {
 public:
  template <class State>
  void add(State& state, std::int64_t amount) noexcept {
    if constexpr (State::reads) {
      const auto size = static_cast<std::uint64_t>(amount < 0 ? -amount : amount);
      total_ += size;
      state.require(total_ <= 2 * static_cast<std::uint64_t>(state_reader::greatest));
      if (state.has_failed()) total_ = 0;
    }
  }

 private:
  std::uint64_t total_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
