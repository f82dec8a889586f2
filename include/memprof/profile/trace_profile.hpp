#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

/// Whether a profile that is made of a trace has `space_profile::facets`, which takes several times as long.
enum class facets : std::uint8_t { none, all };

/// The profile of what is in a trace: that of its capture, but for the `cost`. Linear in the events, some 30 million a second.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const trace& source, facets asked = facets::none);

/// The same of a trace in a file that is open, from where it stands, with what was found of it in `status`; `path` is its name
/// for messages. A file that is cut off or damaged gives the profile of what comes before, which is not `exact`. Raises an error
/// as `read_trace` does. So many segments are kept in full as `kept_segments` says; 0: as many as the capture kept.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(std::FILE* file, const std::filesystem::path& path, trace_file_status& status,
                                                   std::uint32_t kept_segments = 0, facets asked = facets::none);

/// The same of the file of that name.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path, trace_file_status& status);

/// The same where it does not matter why a profile is not `exact`.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/fold_trace.hpp>
#endif
