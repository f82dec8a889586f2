#pragma once

#include <memprof/profile/profile.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether any block of the space was recorded on cores.
[[nodiscard]] bool has_blocks_on_cores(const auto& space) { return !space.cores.ranges.empty(); }

/// Whether the device has such memory on each of its cores, even if none of it was used.
[[nodiscard]] bool has_cores(const auto& space) { return has_blocks_on_cores(space) || space.capacity_is_per_core; }

}  // namespace memprof::inline MEMPROF_ABI::detail
