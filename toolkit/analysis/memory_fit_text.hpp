#pragma once

#include <memprof/toolkit/analysis/memory_fit.hpp>

#include <string>
#include <string_view>

/// @file
/// The answer to "does it fit" in a few lines.

namespace memprof::inline MEMPROF_ABI {

/// Whether it fits and what it needs, in MB of 2^20 bytes. `operation` is the path of the operation in `first_failure`; empty if
/// none was open.
[[nodiscard]] std::string to_text(const memory_fit& fit, std::string_view operation = {});

}  // namespace memprof::inline MEMPROF_ABI
