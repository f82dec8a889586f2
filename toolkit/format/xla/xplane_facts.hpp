#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What a trace of an XLA profile has besides events.

namespace memprof::inline MEMPROF_ABI {

/// A program in a memory space, in bytes: a row of the table `xla_programs`.
struct xla_program_fact {
  std::string program;
  std::string space;
  std::int64_t peak = 0;
  std::int64_t unpadded_peak = 0;
  std::int64_t parameters = 0;
  std::int64_t outputs = 0;
  std::int64_t temporaries = 0;  ///< at the peak
  std::int64_t all_allocations = 0;
  std::int64_t thread_local_bytes = 0;  ///< in none of the others
  std::int64_t runs = 0;                ///< on all cores of a TPU; 0: not in the profile

  static constexpr std::string_view table = "xla_programs";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("program", row.program);
    visit("space", row.space);
    visit("peak", row.peak);
    visit("unpadded_peak", row.unpadded_peak);
    visit("parameters", row.parameters);
    visit("outputs", row.outputs);
    visit("temporaries", row.temporaries);
    visit("all_allocations", row.all_allocations);
    visit("thread_local", row.thread_local_bytes);
    visit("runs", row.runs);
  }
};

/// A block that is live at a program's peak: a row of the table `xla_live_at_peak`.
struct xla_live_block_fact {
  std::string program;
  std::string space;
  std::string instruction;
  std::string op_name;
  std::string opcode;
  std::string source;  ///< "file:line"
  std::string shape;
  std::string group;
  std::int64_t bytes = 0;
  std::int64_t unpadded_bytes = 0;

  static constexpr std::string_view table = "xla_live_at_peak";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("program", row.program);
    visit("space", row.space);
    visit("instruction", row.instruction);
    visit("op_name", row.op_name);
    visit("opcode", row.opcode);
    visit("source", row.source);
    visit("shape", row.shape);
    visit("group", row.group);
    visit("bytes", row.bytes);
    visit("unpadded_bytes", row.unpadded_bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
