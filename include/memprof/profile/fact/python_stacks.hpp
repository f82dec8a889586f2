#pragma once

#include <memprof/config.hpp>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// `heap_stacks::unwinder` of a trace whose stacks are calls in Python, of blocks of tensors in any memory space.
inline constexpr std::string_view stacks_of_python = "python";

}  // namespace memprof::inline MEMPROF_ABI
