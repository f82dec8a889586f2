#pragma once

namespace memprof_tests {

/// Whether the program is watched by the thread sanitizer, which ends a child that starts a thread while its parent has others
/// ("dup thread with used id"): the C library gives the new thread the stack, and so the id, of one that only the parent has.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool has_thread_sanitizer = true;
#else
inline constexpr bool has_thread_sanitizer = false;
#endif

}  // namespace memprof_tests
