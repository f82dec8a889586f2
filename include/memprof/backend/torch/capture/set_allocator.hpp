#pragma once

#include <memprof/config.hpp>

#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>

#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// Installs the allocator of a device type. libtorch ignores a priority below the current one, which cannot be queried.
[[nodiscard]] inline bool set_allocator(c10::DeviceType device, c10::Allocator& allocator) {
  for (unsigned priority = 0; priority <= std::numeric_limits<std::uint8_t>::max(); ++priority) {
    c10::SetAllocator(device, &allocator, static_cast<std::uint8_t>(priority));
    if (c10::GetAllocator(device) == &allocator) return true;
  }
  return false;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
