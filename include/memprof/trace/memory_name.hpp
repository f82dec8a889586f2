#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <string_view>

/// @file
/// The memory that a space belongs to. Spaces in the same memory compete for its bytes, so their joint usage at one moment
/// matters.

namespace memprof::inline MEMPROF_ABI {

/// The name of the host's memory, which holds `cpu` and, by default, every `memory_resource`.
inline constexpr std::string_view host_memory_name = "host";

namespace extend {

/// The label that stands for `host_memory_name`. Other memories have their name's label in the trace; 0 stands for a space with a
/// memory to itself.
inline constexpr label host_memory = other_names + 1;

}  // namespace extend

namespace detail {

/// Whether a name is a device name as PyTorch writes it: "cuda:0".
[[nodiscard]] constexpr bool is_device_name(std::string_view name) noexcept {
  std::size_t digits = name.size();
  while (digits != 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  return digits != name.size() && digits > 1 && name[digits - 1] == ':';
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
