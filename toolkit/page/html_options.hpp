#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What a page says besides the numbers, and how it is packed.
struct html_options {
  std::string title;               ///< its heading; empty: the name of the captured program
  std::string source;              ///< name of the file that the page was made from, if any
  std::vector<std::string> notes;  ///< sentences that readers of the numbers must know
  /// The bytes as a gzip member, as made by zlib; null: they are stored, in a page about three times as large.
  std::string (*gzip)(std::string_view) = nullptr;
  /// The calls of a stack by name, outermost first, for the flame graph of a trace with stacks; null: it is left out. The
  /// toolkit's is `calls_by_name()` of <memprof/toolkit/symbols/named_stacks.hpp>.
  std::function<std::vector<std::string>(extend::name_view names, extend::label stack)> calls_of_stack = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI
