#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

/// Whether a profile made from a trace has `space_profile::facets`, which takes several times as long.
enum class facets : std::uint8_t { none, all };

/// The profile of a trace: that of its capture, except for `cost`. Linear in the events, about 30 million a second.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const trace& source, facets asked = facets::none);

/// The profile of a trace in an open file, from its current position; `status` reports the state of the trace, and `path` is the
/// file's name for messages. A truncated or damaged file gives the profile of the part before the damage, which is not `exact`.
/// Raises errors like `read_trace`. `full_segments` segments are kept in full; 0: as many as the capture kept.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(std::FILE* file, const std::filesystem::path& path, trace_file_status& status,
                                                   std::uint32_t full_segments = 0, facets asked = facets::none);

/// The same, given the file's name.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path, trace_file_status& status);

/// The same, for callers that need not know why a profile is not `exact`.
[[nodiscard]] MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/fold_trace.hpp>
#endif
