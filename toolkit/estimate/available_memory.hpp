#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes that programs may still take without swapping: Linux' estimate `MemAvailable`, which counts what it caches of files,
/// and at most `limit`, which the process's container may take (`container_limit`; -1: any). INT64_MAX if unknown. `root` is
/// where / is, for tests.
[[nodiscard]] std::int64_t available_memory(std::int64_t limit, const std::string& root = {});

}  // namespace memprof::inline MEMPROF_ABI::detail
