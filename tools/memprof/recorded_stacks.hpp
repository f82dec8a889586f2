#pragma once

#include "recording.hpp"

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tool {

/// A recording, and who allocated what in it.
struct recorded_stacks {
  recording content;
  memprof::stack_table stacks;  ///< of a trace: with categories, sizes and callers
};

/// Reads a trace or a profile; its provenance names the file. Throws `memprof::error` if it is neither, or records no memory.
/// `full_segments` as in `read_recording`.
[[nodiscard]] recorded_stacks read_stacks(const std::string& path, std::uint32_t full_segments = 0);

/// The requested space, or the one with the greatest peak.
[[nodiscard]] const memprof::space_profile& space_of(const memprof::profile& profile, const std::string& asked);

}  // namespace memprof_tool
