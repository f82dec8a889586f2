#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What `<memprof/check.hpp>` checks a profile against, and what comes out.

namespace memprof::inline MEMPROF_ABI {

namespace literals {

/// Sizes in bytes: `64_MiB`. After `using namespace memprof::literals`.
[[nodiscard]] constexpr std::int64_t operator""_KiB(unsigned long long count) noexcept {
  return static_cast<std::int64_t>(count << 10);
}
[[nodiscard]] constexpr std::int64_t operator""_MiB(unsigned long long count) noexcept {
  return static_cast<std::int64_t>(count << 20);
}
[[nodiscard]] constexpr std::int64_t operator""_GiB(unsigned long long count) noexcept {
  return static_cast<std::int64_t>(count << 30);
}

}  // namespace literals

/// Whether a profile keeps a limit. True if it does.
struct check_result {
  bool passed = true;
  std::string message;  ///< what was found, by how much it is over the limit, and the largest owners; a line each

  explicit operator bool() const noexcept { return passed; }
};

/// At most so many bytes live at one moment: in a memory space; in the segments of a name; or, of an operation, added by any one
/// of its invocations (`operation_usage::peak`). Name at most one of `segment` and `operation`: both together fail.
struct peak_limit {
  std::string_view space = {};  ///< empty: each memory space
  std::string_view segment = {};
  std::string_view operation = {};  ///< its path
  std::int64_t at_most = 0;
};

/// At most so many bytes more after each step. Steps are those of the summary's line `Growth`; at least eight are needed.
struct growth_limit {
  std::string_view space = {};  ///< empty: each memory space
  std::int64_t at_most = 0;     ///< per step
};

/// At most so many allocations: in the whole capture, or in all invocations of an operation with the operations in it.
struct allocation_limit {
  std::string_view space = {};      ///< empty: all memory spaces together
  std::string_view operation = {};  ///< its path, such as the name of an outermost scope; empty: the whole capture
  std::int64_t at_most = 0;
};

/// At most so many bytes left behind: live at the end of the capture. Of an operation, the greater of that and of what one
/// invocation had allocated and not freed when it ended.
struct leftover_limit {
  std::string_view space = {};      ///< empty: each memory space
  std::string_view operation = {};  ///< as in `allocation_limit`
  std::int64_t at_most = 0;
};

}  // namespace memprof::inline MEMPROF_ABI
