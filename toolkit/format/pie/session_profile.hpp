#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>

#include <string>
#include <vector>

/// @file
/// The session profile of a profile: what it kept of checkpoints, segments and calls.

namespace memprof::inline MEMPROF_ABI {

/// Writes the session profile of a profile, with its checkpoints and ends of segments as snapshots. Whatever a profile lacks is
/// null, and is returned as sentences: only a trace has all snapshots and every call.
std::vector<std::string> write_session(const profile& run, byte_sink_view out);

/// What a session profile lacks besides what `write_session` returns, of a profile or of a trace with that profile.
[[nodiscard]] std::vector<std::string> session_losses(const profile& run);

}  // namespace memprof::inline MEMPROF_ABI
