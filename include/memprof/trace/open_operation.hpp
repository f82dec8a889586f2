#pragma once

#include <memprof/trace/label.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// An operation that has begun but not ended: what is needed to end it, perhaps on another thread.
struct open_operation {
  std::uint32_t number = 0;  ///< among the operations of its thread, from 1; 0: none was begun
  std::uint32_t thread = 0;  ///< number of that thread; 0 if it could not record
  std::uint32_t outer = 0;   ///< number of the enclosing operation
  label name = 0;
  label outer_name = 0;  ///< the enclosing name that backends see
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
