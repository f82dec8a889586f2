#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// Parsers for parts of the lines logged by tt-mlir's runtime (its runtime/lib/ttnn/program_executor.cpp,
/// common/runtime/debug.cpp).

namespace memprof::inline MEMPROF_ABI {

/// The kinds of memory of a device, in the order of the log.
inline constexpr std::array<std::string_view, 4> tt_memory_names{"DRAM", "L1", "L1_SMALL", "TRACE"};
/// Their memory spaces in a trace, named as in `device_preset`.
inline constexpr std::array<std::string_view, 4> tt_space_names{"dram", "l1", "l1_small", "trace"};
inline constexpr std::size_t tt_memory_count = tt_memory_names.size();

/// What one kind of memory holds per bank: MiB printed with three decimals, so bytes are known to the nearest KiB.
struct tt_memory_view {
  std::int64_t banks = 0;
  double total = 0;
  double allocated = 0;
  double free = 0;
  double largest_free = 0;
  double step = 0;  ///< precision in MiB: a unit of the last digit

  bool operator==(const tt_memory_view&) const = default;
};

/// The share of free memory that is not available in one piece: 1 - largest / free; 0 if nothing is free.
[[nodiscard]] double tt_fragmentation(double largest_free, double free) noexcept;

/// `mebibytes` as bytes, rounded to nearest.
[[nodiscard]] std::int64_t bytes_of_mebibytes(double mebibytes) noexcept;

/// An allocation that failed for lack of device memory, in bytes; -1 if the line lacks the number.
struct tt_out_of_memory {
  std::size_t memory = 0;  ///< index into `tt_memory_names`
  std::int64_t requested = 0;
  std::int64_t banks = 0;
  std::int64_t per_bank = 0;
  std::int64_t bank_size = -1;
  std::int64_t allocated = -1;  ///< this and the following per bank
  std::int64_t free = -1;
  std::int64_t largest_free = -1;

  bool operator==(const tt_out_of_memory&) const = default;
};

namespace detail {

/// The label "[1,0]<stdout>:" that Open MPI puts before a rank's line: the number of the rank and the length of the label.
struct mpi_label {
  std::string_view rank;
  std::size_t length = 0;  ///< 0: there is none
};

[[nodiscard]] mpi_label mpi_label_of(std::string_view line) noexcept;

/// The trimmed text after `head` in a line; nothing if `head` does not occur.
[[nodiscard]] std::optional<std::string_view> text_after(std::string_view line, std::string_view head) noexcept;

/// The word after `head`, up to a space; empty if there is none.
[[nodiscard]] std::string_view word_after(std::string_view line, std::string_view head) noexcept;

[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text) noexcept;

/// The number of bytes in "12 B" after `head`.
[[nodiscard]] std::optional<std::int64_t> bytes_after(std::string_view line, std::string_view head) noexcept;

/// The kind of memory in "Device DRAM memory state: MemoryView{..."; nothing if the line has none.
[[nodiscard]] std::optional<std::size_t> tt_memory_of_line(std::string_view line) noexcept;

/// Parses "MemoryView{...}"; nothing if one of its five numbers is missing or invalid.
[[nodiscard]] std::optional<tt_memory_view> parse_tt_memory_view(std::string_view line) noexcept;

/// Why no device can have these numbers; empty if one can. The limits of 65,536 banks and 16 TiB per bank keep all sums within 63
/// bits.
[[nodiscard]] std::string_view impossibility_of(const tt_memory_view& view) noexcept;

/// Parses "Not enough space to allocate 33554432 B DRAM buffer across 12 banks, where each bank needs to store 2797568 B, but
/// bank size is 1071821792 B (allocated: ... B, free: ... B, largest free block: ... B)"; nothing if the line has no such
/// sentence.
[[nodiscard]] std::optional<tt_out_of_memory> parse_tt_out_of_memory(std::string_view line) noexcept;

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
