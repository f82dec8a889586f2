#pragma once

#include <memprof/trace/label.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// An operation that was begun and not ended: what its end needs, perhaps on another thread.
struct open_operation {
  std::uint32_t number = 0;  ///< counts the operations of its thread, from 1; 0: none was begun
  std::uint32_t thread = 0;  ///< number of that thread; 0 if it could not record
  std::uint32_t outer = 0;   ///< number of the operation around it
  label name = 0;
  label outer_name = 0;  ///< the name that backends see around it
};

}  // namespace memprof::inline MEMPROF_ABI
