#pragma once

#include <memprof/config.hpp>

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

#if defined(__cpp_exceptions)

/// Throws `memprof::error`. Out of line, to keep the callers' normal path small.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) { throw error(text); }

#else

/// Prints the text of the `memprof::error` on stderr and aborts, because -fno-exceptions leaves no other way out.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) {
  std::fprintf(stderr, "memprof: %s\n", text.c_str());
  std::abort();
}

#endif

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
