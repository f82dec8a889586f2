#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <string_view>

/// @file
/// In which memory a space lies. Spaces of one memory compete for its bytes: what they hold at the same moment counts.

namespace memprof::inline MEMPROF_ABI {

/// The name of the memory of the processor: that of `cpu` and of every `memory_resource`, unless another is asked for.
inline constexpr std::string_view host_memory_name = "host";

/// Stands for `host_memory_name` where a memory is a label. Memories of other names are labels of the trace, and 0 is that of a
/// space which has a memory to itself.
inline constexpr label host_memory = other_names + 1;

namespace detail {

/// Whether a name is that of a device as PyTorch writes it: "cuda:0".
[[nodiscard]] constexpr bool is_device_name(std::string_view name) noexcept {
  std::size_t digits = name.size();
  while (digits != 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  return digits != name.size() && digits > 1 && name[digits - 1] == ':';
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
