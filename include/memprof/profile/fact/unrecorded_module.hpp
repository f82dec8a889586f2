#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A loaded library that has a registry of its own, so that its events are missing (record/registry.hpp).
struct unrecorded_module {
  std::string path;

  bool operator==(const unrecorded_module&) const = default;

  static constexpr std::string_view table = "unrecorded_modules";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("path", row.path);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
