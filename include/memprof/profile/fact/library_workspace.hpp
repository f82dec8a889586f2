#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A block that a library keeps to work in. It is recorded like any other, with the category `other`.
struct library_workspace {
  std::string space;    ///< the memory space of the block
  std::string library;  ///< "cuBLAS", "cuBLASLt"
  std::int64_t bytes = 0;

  bool operator==(const library_workspace&) const = default;

  static constexpr std::string_view table = "library_workspaces";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("space", row.space);
    visit("library", row.library);
    visit("bytes", row.bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
