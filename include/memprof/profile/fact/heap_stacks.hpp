#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Which blocks of the C++ heap have a stack in the trace: `capture_options::stacks`.
struct heap_stacks {
  std::int64_t from_bytes = 0;      ///< all blocks of at least this size
  std::int64_t sample_bytes = 0;    ///< of smaller ones, each with the probability 1 - exp(-its bytes / this); 0: none
  std::int64_t missing_blocks = 0;  ///< blocks that should have one and do not; in a capture that has not ended, 0
  std::string unwinder;             ///< what walked the stacks

  bool operator==(const heap_stacks&) const = default;

  static constexpr std::string_view table = "stacks";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("from_bytes", row.from_bytes);
    visit("sample_bytes", row.sample_bytes);
    visit("missing_blocks", row.missing_blocks);
    visit("unwinder", row.unwinder);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
