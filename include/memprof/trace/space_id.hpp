#pragma once

#include <cstdint>

namespace memprof {

/// A memory space by its number, which is that of one process or one trace: see `memory_space`, `trace_writer::space`.
struct space_id {
  std::uint8_t value = 0;

  bool operator==(const space_id&) const = default;
};

}  // namespace memprof
