#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Hears by how much the live bytes of a device's space change: under the lock of whoever tells it, which is the order of the
/// changes. Must be fast, and must not call CUDA.
using live_bytes_listener = void (*)(space_id space, std::int64_t change) noexcept;

/// Null: nobody listens.
inline constinit std::atomic<live_bytes_listener> process_live_bytes_listener{nullptr};

inline void tell_live_bytes(space_id space, std::int64_t change) noexcept {
  // Acquire pairs with the release of the backend that sets it.
  if (const live_bytes_listener listener = process_live_bytes_listener.load(std::memory_order_acquire); listener != nullptr)
      [[unlikely]]
    listener(space, change);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
