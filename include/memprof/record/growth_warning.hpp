#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// An owner that has grown for `capture_options::warn_growth_after` steps, reported while the program runs. The texts are valid
/// only during the call.
struct growth_warning {
  std::string_view space;
  std::string_view owner;       ///< as in `owner_growth`; of a path longer than 255 bytes, the end
  double per_step = 0;          ///< bytes
  std::int64_t since_step = 0;  ///< from 0; -1: before the first of the steps that were watched
  std::int64_t steps = 0;       ///< how many there were so far
};

}  // namespace memprof::inline MEMPROF_ABI
