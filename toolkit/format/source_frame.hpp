#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// A call in a program's source.
struct source_frame {
  std::string function;  ///< empty: unknown
  std::string file;      ///< empty: unknown
  int line = 0;          ///< 0: unknown
  std::string module;    ///< the file that has the code, without its folder; empty: none
  std::uint64_t offset = 0;

  bool operator==(const source_frame&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI
