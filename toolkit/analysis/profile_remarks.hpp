#pragma once

#include <memprof/profile/profile.hpp>

#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Caveats about the numbers of a memory space, one sentence each: what its source lacks, what is inconsistent, and what happened
/// to the capture. `space` must be one of the profile's.
[[nodiscard]] std::vector<std::string> remarks_on(const profile& of, const space_profile& space);

}  // namespace memprof::inline MEMPROF_ABI
