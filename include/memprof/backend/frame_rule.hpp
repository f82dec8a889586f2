#pragma once

#include <memprof/backend/frame_table_reader.hpp>
#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <limits>

/// @file
/// How to leave a function on x86-64: the part of its unwind table (.eh_frame, as the "Linux Standard Base Core
/// Specification" 5.0, chapter 10.6, and DWARF 5, section 6.4, describe it) that finds the function around it.

namespace memprof::inline MEMPROF_ABI::detail {

/// Where a function that made a call keeps what is needed to leave it. Its return address is below the *frame address*, which is
/// the stack pointer once it has returned. Eight bytes, so that it can be stored at one go.
struct frame_rule {
  enum class frame_address : std::uint8_t {
    unknown,    ///< to another walker: in none of these ways, or there is no table
    outermost,  ///< nothing is around it
    from_rsp,   ///< the stack pointer plus the offset
    from_rbp,   ///< rbp plus the offset
    loaded,     ///< stored at rbp plus the offset, by functions that align their stack
  };
  enum class saved_rbp : std::uint8_t {
    kept,      ///< rbp has not changed
    from_cfa,  ///< stored at the frame address plus the offset
    from_rbp,  ///< stored at rbp plus the offset
  };

  frame_address cfa = frame_address::unknown;
  saved_rbp rbp = saved_rbp::kept;
  std::int16_t rbp_offset = 0;
  std::int32_t cfa_offset = 0;

  bool operator==(const frame_rule&) const = default;
};
static_assert(sizeof(frame_rule) == sizeof(std::uint64_t));

/// Runs the instructions of a table for one place in the code.
class frame_program {
 public:
  /// Of the tables that begin with that "common information entry" ("CIE").
  explicit frame_program(frame_table_reader entry) noexcept {
    const auto version = entry.fixed<std::uint8_t>();
    const char* const augmentation = reinterpret_cast<const char*>(entry.position());
    while (entry.fixed<char>() != '\0') {
    }
    code_unit_ = entry.number();
    data_unit_ = entry.signed_number();
    const std::uint64_t return_column = version == 1 ? entry.fixed<std::uint8_t>() : entry.number();
    is_readable_ = (version == 1 || version == 3) && return_column == return_address_column && augmentation[0] == 'z';
    if (!is_readable_) return;
    frame_table_reader data = entry.part(entry.number());
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) read_augmentation(*letter, data);
    if (entry.has_failed() || data.has_failed()) is_readable_ = false;
    if (is_readable_) run(entry, 0, 0);
    initial_ = row_;
  }

  /// How to leave the function whose entry ("FDE") that is, without its length and pointer to the CIE, when the call before
  /// `place` is made.
  [[nodiscard]] frame_rule rule_at(frame_table_reader entry, std::uintptr_t function, std::uintptr_t place) noexcept {
    if (!is_readable_) return {};
    (void)entry.fixed<std::int32_t>();  // where the function begins
    const auto length = entry.fixed<std::uint32_t>();
    if (place - function >= length) return {};
    entry.skip(entry.number());  // of the augmentation
    run(entry, function, place);
    return is_readable_ && !entry.has_failed() ? row_.rule() : frame_rule{};
  }

 private:
  static constexpr std::uint64_t rbp_column = 6;
  static constexpr std::uint64_t rsp_column = 7;
  static constexpr std::uint64_t return_address_column = 16;
  static constexpr std::int64_t return_address_offset = -8;

  enum class return_address : std::uint8_t { below_frame, none, elsewhere };

  struct row {
    frame_rule::frame_address cfa = frame_rule::frame_address::unknown;
    frame_rule::saved_rbp rbp = frame_rule::saved_rbp::kept;
    return_address back = return_address::elsewhere;
    bool is_unusual = false;  ///< rbp or the stack pointer is kept in another way
    std::int64_t cfa_offset = 0;
    std::int64_t rbp_offset = 0;

    [[nodiscard]] frame_rule rule() const noexcept {
      if (back == return_address::none) return {frame_rule::frame_address::outermost};
      constexpr std::int64_t far = std::numeric_limits<std::int16_t>::max();
      constexpr std::int64_t very_far = std::int64_t{1} << 28;
      if (back == return_address::elsewhere || is_unusual || rbp_offset < -far || rbp_offset > far || cfa_offset < -very_far ||
          cfa_offset > very_far)
        return {};
      return {cfa, rbp, static_cast<std::int16_t>(rbp_offset), static_cast<std::int32_t>(cfa_offset)};
    }
  };

  void read_augmentation(char letter, frame_table_reader& data) noexcept {
    constexpr std::uint8_t relative_32_bits = 0x1B;  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
    switch (letter) {
      case 'R':
        if (data.fixed<std::uint8_t>() != relative_32_bits) is_readable_ = false;
        return;
      case 'P': return skip_pointer(data.fixed<std::uint8_t>(), data);
      case 'L': (void)data.fixed<std::uint8_t>(); return;
      default: is_readable_ = false;  // 'S', a signal's frame, whose addresses are not those of calls
    }
  }
  void skip_pointer(std::uint8_t encoding, frame_table_reader& data) noexcept {
    switch (encoding & 0x0F) {
      case 0x00:                        // DW_EH_PE_absptr
      case 0x04:                        // udata8
      case 0x0C: data.skip(8); return;  // sdata8
      case 0x03:                        // udata4
      case 0x0B: data.skip(4); return;  // sdata4
      default: is_readable_ = false;
    }
  }

  /// Up to the row of `place`; with 0, all.
  void run(frame_table_reader& code, std::uintptr_t at, std::uintptr_t place) noexcept {
    while (code.left() != 0 && is_readable_) {
      const auto instruction = code.fixed<std::uint8_t>();
      const std::uint64_t operand = instruction & 0x3FU;
      switch (instruction >> 6) {
        case 1: at += operand * code_unit_; break;  // DW_CFA_advance_loc
        case 2: save(operand, static_cast<std::int64_t>(code.number()) * data_unit_); break;
        case 3: restore(operand); break;
        default: run_extended(instruction, code, at);
      }
      if (place != 0 && at > place) return;
    }
  }

  void run_extended(std::uint8_t instruction, frame_table_reader& code, std::uintptr_t& at) noexcept {
    switch (instruction) {
      case 0x00: return;  // DW_CFA_nop
      case 0x02: at += code.fixed<std::uint8_t>() * code_unit_; return;
      case 0x03: at += code.fixed<std::uint16_t>() * code_unit_; return;
      case 0x04: at += code.fixed<std::uint32_t>() * code_unit_; return;
      case 0x05: {  // DW_CFA_offset_extended
        const std::uint64_t column = code.number();
        return save(column, static_cast<std::int64_t>(code.number()) * data_unit_);
      }
      case 0x06: return restore(code.number());
      case 0x07: return undefine(code.number());
      case 0x08: return keep(code.number());
      case 0x09: change(code.number()), (void)code.number(); return;  // DW_CFA_register
      case 0x0A: return remember();
      case 0x0B: return recall();
      case 0x0C: define_from(code.number()), row_.cfa_offset = static_cast<std::int64_t>(code.number()); return;
      case 0x0D: return define_from(code.number());
      case 0x0E: row_.cfa_offset = static_cast<std::int64_t>(code.number()); return;
      case 0x0F: return define_by(code.part(code.number()));
      case 0x10: {  // DW_CFA_expression
        const std::uint64_t column = code.number();
        return save_by(column, code.part(code.number()));
      }
      case 0x11: {  // DW_CFA_offset_extended_sf
        const std::uint64_t column = code.number();
        return save(column, code.signed_number() * data_unit_);
      }
      case 0x12: define_from(code.number()), row_.cfa_offset = code.signed_number() * data_unit_; return;
      case 0x13: row_.cfa_offset = code.signed_number() * data_unit_; return;
      case 0x14: change(code.number()), (void)code.number(); return;         // DW_CFA_val_offset
      case 0x15: change(code.number()), (void)code.signed_number(); return;  // DW_CFA_val_offset_sf
      case 0x16: change(code.number()), code.skip(code.number()); return;    // DW_CFA_val_expression
      case 0x2E: (void)code.number(); return;                                // DW_CFA_GNU_args_size
      default: is_readable_ = false;
    }
  }

  [[nodiscard]] static bool is_followed(std::uint64_t column) noexcept {
    return column == rbp_column || column == rsp_column || column == return_address_column;
  }

  void save(std::uint64_t column, std::int64_t offset) noexcept {
    if (column == rbp_column) row_.rbp = frame_rule::saved_rbp::from_cfa, row_.rbp_offset = offset;
    if (column == rsp_column) row_.is_unusual = true;
    if (column == return_address_column)
      row_.back = offset == return_address_offset ? return_address::below_frame : return_address::elsewhere;
  }
  void restore(std::uint64_t column) noexcept {
    if (column == rbp_column) row_.rbp = initial_.rbp, row_.rbp_offset = initial_.rbp_offset;
    if (column == return_address_column) row_.back = initial_.back;
  }
  void undefine(std::uint64_t column) noexcept {
    if (column == return_address_column)
      row_.back = return_address::none;
    else
      change(column);
  }
  void keep(std::uint64_t column) noexcept {
    if (column == rbp_column) row_.rbp = frame_rule::saved_rbp::kept, row_.rbp_offset = 0;
    if (column == return_address_column) row_.back = return_address::elsewhere;
  }
  void change(std::uint64_t column) noexcept {
    if (is_followed(column)) row_.is_unusual = true;
  }
  void define_from(std::uint64_t column) noexcept {
    using enum frame_rule::frame_address;
    row_.cfa = column == rsp_column ? from_rsp : column == rbp_column ? from_rbp : unknown;
  }
  /// The offset from rbp in an expression that begins with it.
  [[nodiscard]] static std::int64_t offset_from_rbp(frame_table_reader& expression) noexcept {
    constexpr std::uint8_t plus_rbp = 0x76;  // DW_OP_breg6
    if (expression.fixed<std::uint8_t>() != plus_rbp) expression.fail();
    return expression.signed_number();
  }
  void define_by(frame_table_reader expression) noexcept {
    constexpr std::uint8_t load = 0x06;  // DW_OP_deref
    row_.cfa_offset = offset_from_rbp(expression);
    const bool is_loaded = expression.fixed<std::uint8_t>() == load && expression.left() == 0 && !expression.has_failed();
    row_.cfa = is_loaded ? frame_rule::frame_address::loaded : frame_rule::frame_address::unknown;
  }
  void save_by(std::uint64_t column, frame_table_reader expression) noexcept {
    if (column == return_address_column) row_.back = return_address::elsewhere;
    if (column == rsp_column) row_.is_unusual = true;
    if (column != rbp_column) return;
    row_.rbp = frame_rule::saved_rbp::from_rbp;
    row_.rbp_offset = offset_from_rbp(expression);
    if (expression.left() != 0 || expression.has_failed()) row_.is_unusual = true;
  }

  void remember() noexcept {
    if (remembered_count_ == sizeof remembered_ / sizeof *remembered_)
      is_readable_ = false;
    else
      remembered_[remembered_count_++] = row_;
  }
  void recall() noexcept {
    if (remembered_count_ == 0)
      is_readable_ = false;
    else
      row_ = remembered_[--remembered_count_];
  }

  std::uint64_t code_unit_ = 1;
  std::int64_t data_unit_ = 1;
  bool is_readable_ = false;
  row row_;
  row initial_;
  row remembered_[8];
  std::size_t remembered_count_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
