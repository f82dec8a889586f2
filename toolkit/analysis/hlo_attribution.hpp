#pragma once

#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the memory of an XLA program is used for at its peak. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

/// A class of blocks. A block belongs to the first class whose group and pattern match.
struct hlo_class_rule {
  std::string name;
  std::optional<hlo_group> group;  ///< none: any
  std::regex op_name;              ///< searched in the block's op name
  memprof::category category = category::other;
  bool has_column = true;  ///< in tables with a column per worker
};

struct hlo_class_rules {
  std::vector<hlo_class_rule> classes;
  std::regex markers;  ///< blocks whose names or shape match are counted: they indicate gradients
};

/// The rules for JAX programs that scan over a carry: `kv_cache`, `model_params`, `other_carry_state` and `other_parameter`, all
/// of them parameters, and words that occur only in training. `\b` treats `_` as a letter: `grad_x` does not match.
[[nodiscard]] hlo_class_rules default_hlo_class_rules();

namespace detail {

/// Whether the pattern occurs in the text. libstdc++ uses stack for each character, so of a long text only the beginning is
/// searched.
[[nodiscard]] bool is_found(const std::regex& pattern, std::string_view text);

}  // namespace detail

/// The index of the block's class; the number of classes if it has none.
[[nodiscard]] std::size_t class_of(const hlo_class_rules& rules, hlo_group group, std::string_view op_name);

/// The category of a block's class, else of its group.
[[nodiscard]] category category_of(const hlo_class_rules& rules, hlo_group group, std::string_view op_name);

/// A block live at the peak, and its purpose.
struct hlo_attributed_block {
  hlo_block block;
  std::size_t of_class = 0;  ///< index into the rules; their number: none
};

/// What a program needs in a memory space, in bytes.
struct hlo_attribution {
  heap_simulation simulation;
  std::vector<hlo_attributed_block> rows;  ///< largest first
  std::array<std::int64_t, 5> groups{};    ///< sums of rows, by `hlo_group`
  std::vector<std::int64_t> classes;       ///< sums of rows, by rule
  std::int64_t small = 0;                  ///< in blocks of less than `small_hlo_block`, which have no rows
  std::int64_t markers = 0;                ///< rows that match the rules' markers
  std::vector<std::string> remarks;        ///< sums that do not add up, with the reason, as sentences without a full stop

  [[nodiscard]] std::int64_t group(hlo_group of) const noexcept { return groups[static_cast<std::size_t>(of)]; }
};

/// XLA's viewer puts smaller blocks into one row.
inline constexpr std::int64_t small_hlo_block = 16384;

/// Finds what is live at the peak in a space and its purpose, including what lives from begin to end, which XLA's viewer lists
/// only for space 0. Throws `memprof::error` if the program contradicts itself.
[[nodiscard]] hlo_attribution attribute(const hlo_memory& memory, std::int64_t space, const hlo_class_rules& rules);

}  // namespace memprof::inline MEMPROF_ABI
