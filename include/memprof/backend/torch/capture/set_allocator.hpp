#pragma once

#include <memprof/config.hpp>

#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>

#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// Makes `allocator` the one of a kind of device. libtorch ignores a priority below the present one, which cannot be asked for.
[[nodiscard]] inline bool set_allocator(c10::DeviceType device, c10::Allocator& allocator) {
  for (unsigned priority = 0; priority <= std::numeric_limits<std::uint8_t>::max(); ++priority) {
    c10::SetAllocator(device, &allocator, static_cast<std::uint8_t>(priority));
    if (c10::GetAllocator(device) == &allocator) return true;
  }
  return false;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
