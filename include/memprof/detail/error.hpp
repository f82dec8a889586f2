#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// Wrong use or bad input. `what()` says what is wrong, where, and what to do. Thrown by control calls, never by recording.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// The text without NULs, at which `what()` would end: names may contain them.
[[nodiscard, gnu::cold, gnu::noinline]] inline std::string with_escaped_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

#if defined(__cpp_exceptions)

/// Throws `memprof::error`. Out of line, to keep the callers' normal path small.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) { throw error(with_escaped_nul(text)); }

#else

/// Prints the text of the `memprof::error` on stderr and aborts, because -fno-exceptions leaves no other way out.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) {
  std::fprintf(stderr, "memprof: %s\n", with_escaped_nul(text).c_str());
  std::abort();
}

#endif

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
