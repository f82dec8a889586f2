#pragma once

#include <memprof/config.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

#if defined(__cpp_exceptions)
/// Whether `act` completed without an exception. The only expected failure is lack of memory.
template <class Act>
[[nodiscard]] bool succeeds(Act&& act) noexcept {
  try {
    act();
    return true;
  } catch (...) {
    return false;
  }
}
#else
template <class Act>
[[nodiscard]] bool succeeds(Act&& act) noexcept {
  act();
  return true;
}
#endif

}  // namespace memprof::inline MEMPROF_ABI::detail
