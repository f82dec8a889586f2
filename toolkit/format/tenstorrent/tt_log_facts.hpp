#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What a trace of a tt-mlir log has besides events, and the names it uses.

namespace memprof::inline MEMPROF_ABI {

/// One kind of memory of a rank: a row of the table `tt_memory`. Bytes are per bank; fragmentation is 1 - largest free block /
/// free bytes.
struct tt_memory_fact {
  std::string space;
  std::int64_t banks = 0;
  std::int64_t bank_bytes = 0;
  std::int64_t peak_bytes = 0;  ///< the most allocated in a bank
  std::int64_t peak_free_bytes = 0;
  std::int64_t peak_largest_free_bytes = 0;
  double peak_fragmentation = 0;
  std::string peak_before;     ///< the first operation with that peak in the state before it
  std::int64_t peak_line = 0;  ///< in the log
  double greatest_fragmentation = 0;
  std::string greatest_before;  ///< the first operation with that fragmentation in the state before it
  std::int64_t greatest_line = 0;
  std::int64_t states = 0;

  static constexpr std::string_view table = "tt_memory";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("space", row.space);
    visit("banks", row.banks);
    visit("bank_bytes", row.bank_bytes);
    visit("peak_bytes", row.peak_bytes);
    visit("peak_free_bytes", row.peak_free_bytes);
    visit("peak_largest_free_bytes", row.peak_largest_free_bytes);
    visit("peak_fragmentation", row.peak_fragmentation);
    visit("peak_before", row.peak_before);
    visit("peak_line", row.peak_line);
    visit("greatest_fragmentation", row.greatest_fragmentation);
    visit("greatest_before", row.greatest_before);
    visit("greatest_line", row.greatest_line);
    visit("states", row.states);
  }
};

/// The fragmentation of one kind of memory over time: a row of the table `tt_fragmentation`, which has at most 512 for each
/// space. Each is the most fragmented state of its stretch; bytes are per bank.
struct tt_fragmentation_fact {
  std::string space;
  std::int64_t time_ns = 0;
  std::int64_t line = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t free_bytes = 0;
  std::int64_t largest_free_bytes = 0;
  double fragmentation = 0;

  static constexpr std::string_view table = "tt_fragmentation";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("space", row.space);
    visit("time_ns", row.time_ns);
    visit("line", row.line);
    visit("allocated_bytes", row.allocated_bytes);
    visit("free_bytes", row.free_bytes);
    visit("largest_free_bytes", row.largest_free_bytes);
    visit("fragmentation", row.fragmentation);
  }
};

/// An allocation that failed for lack of memory, as given in its message: a row of the table `tt_out_of_memory`, which has the
/// first 32. Sizes in bytes; -1 if the message lacks them.
struct tt_out_of_memory_fact {
  std::string space;
  std::int64_t line = 0;
  std::int64_t requested = 0;
  std::int64_t banks = 0;
  std::int64_t bytes_per_bank = 0;
  std::int64_t bank_bytes = -1;
  std::int64_t allocated_in_bank = -1;
  std::int64_t free_in_bank = -1;
  std::int64_t largest_free_in_bank = -1;
  double fragmentation = 0;

  static constexpr std::string_view table = "tt_out_of_memory";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("space", row.space);
    visit("line", row.line);
    visit("requested", row.requested);
    visit("banks", row.banks);
    visit("bytes_per_bank", row.bytes_per_bank);
    visit("bank_bytes", row.bank_bytes);
    visit("allocated_in_bank", row.allocated_in_bank);
    visit("free_in_bank", row.free_in_bank);
    visit("largest_free_in_bank", row.largest_free_in_bank);
    visit("fragmentation", row.fragmentation);
  }
};

/// An argument of the compiled module's `main`: a row of the table `tt_inputs`, which has the first 4096.
struct tt_input_fact {
  std::string argument;
  std::string name;
  std::string type;
  std::string shape;
  std::string dtype;
  std::int64_t bytes = 0;

  static constexpr std::string_view table = "tt_inputs";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("argument", row.argument);
    visit("name", row.name);
    visit("type", row.type);
    visit("shape", row.shape);
    visit("dtype", row.dtype);
    visit("bytes", row.bytes);
  }
};

inline constexpr std::string_view tt_before_log = "(before the log)";  ///< operation of what was live at the start of the log
inline constexpr std::string_view tt_before_segment = "BEFORE_LOG";    ///< segment in which that is allocated
inline constexpr std::string_view tt_end_segment = "AFTER_PROGRAMS";   ///< segment of what follows the last program

}  // namespace memprof::inline MEMPROF_ABI
