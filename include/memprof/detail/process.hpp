#pragma once

#include <cstdint>

#include <unistd.h>

namespace memprof::detail {

/// The number of the calling process: another one in a child after `fork`, also before its fork handlers have run.
[[nodiscard]] inline std::int64_t process_id() noexcept { return ::getpid(); }

}  // namespace memprof::detail
