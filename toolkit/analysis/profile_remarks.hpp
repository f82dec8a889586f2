#pragma once

#include <memprof/profile/profile.hpp>

#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Caveats about the numbers of a memory space, one sentence each: what its source lacks, what is inconsistent, and what happened
/// to the capture. `space` must be one of the profile's.
[[nodiscard]] std::vector<std::string> remarks_on(const profile& of, const space_profile& space);

/// The same of several of its memory spaces, each caveat once.
[[nodiscard]] std::vector<std::string> remarks_on(const profile& of, const std::vector<const space_profile*>& spaces);

/// The same of all.
[[nodiscard]] std::vector<std::string> remarks_on(const profile& of);

/// Caveats of several runs under their titles, as "before: ..."; what all have is said once, without a title.
[[nodiscard]] std::vector<std::string> titled_remarks(const std::vector<std::string>& titles,
                                                      const std::vector<std::vector<std::string>>& remarks);

}  // namespace memprof::inline MEMPROF_ABI
