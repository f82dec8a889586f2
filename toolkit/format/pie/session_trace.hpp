#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Writes the session profile of a trace whose profile is `run`: a snapshot at each checkpoint and at the end of each segment,
/// with the blocks live there, and each call of each operation. A call's numbers cover all devices and threads while it ran, as
/// in the original. Returns what is missing as sentences. Two passes; takes memory for what is live, and 64 bytes for each call.
std::vector<std::string> write_session(trace_source_view source, const profile& run, byte_sink_view out);

/// The session profile of a run as text: from its trace file, which may still be growing, or, if `trace_file` is empty or cannot
/// be read, from its profile alone.
[[nodiscard]] std::string session_text_of(const profile& run, const std::string& trace_file);

}  // namespace memprof::inline MEMPROF_ABI
