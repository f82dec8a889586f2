#pragma once

#include <memprof/profile/profile.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether blocks of the space were recorded on cores.
[[nodiscard]] bool lies_on_cores(const auto& space) { return !space.cores.ranges.empty(); }

/// Whether the device has memory of that kind on each of its cores, whether or not anything was there.
[[nodiscard]] bool has_cores(const auto& space) { return lies_on_cores(space) || space.capacity_is_per_core; }

}  // namespace memprof::inline MEMPROF_ABI::detail
