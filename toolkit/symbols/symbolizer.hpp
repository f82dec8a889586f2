#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/trace/stack_name.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Finds the names of return addresses in the files that a program had loaded, and in their debug files. A file whose build-id is
/// not the one in the trace is another one, and is not asked. No name is a guess: where no symbol covers the address there is
/// none.
class symbolizer {
 public:
  symbolizer();
  symbolizer(const symbolizer&) = delete;
  symbolizer& operator=(const symbolizer&) = delete;
  ~symbolizer();

  /// Whether it reads debug information, with inlined calls, files and lines, by elfutils' libdw. Otherwise it knows the symbols
  /// of the files themselves.
  [[nodiscard]] static bool reads_debug_information() noexcept;

  /// The calls at a return address, innermost first: the functions that were inlined there, and the one that they are in. At
  /// least one. Where the trace has them itself (`module_text::calls`), no file is asked.
  [[nodiscard]] std::vector<source_frame> calls_at(const detail::module_text& module, std::uint64_t offset);

 private:
  struct files;
  std::unique_ptr<files> files_;
};

}  // namespace memprof::inline MEMPROF_ABI
