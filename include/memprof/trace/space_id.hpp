#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// A memory space's number within one process or one trace: see `memory_space`, `trace_writer::space`.
struct space_id {
  std::uint8_t value = 0;

  bool operator==(const space_id&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI
