#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Appends an operation's name to the path of the enclosing operation, which is empty for an outermost one: `a/b`.
///
/// A path identifies one operation. So `/` and `\` in a name become `\/` and `\\`, and an empty name becomes `\-`. The empty path
/// stands for no operation, and a final `\other` for all operations beyond the last with a row of its own.
inline void append_operation(std::string& path, std::string_view name) {
  if (!path.empty()) path += '/';
  if (name.empty()) path += "\\-";
  for (const char character : name) {
    if (character == '/' || character == '\\') path += '\\';
    path += character;
  }
}

/// Appends `\other`, which no name can produce.
inline void append_other_operations(std::string& path) {
  if (!path.empty()) path += '/';
  path += "\\other";
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
