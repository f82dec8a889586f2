#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The memory summaries in a log of tt-train's memory tracker, or of a program that prints those of `to_text` (in either format),
/// in the order in which they begin.
///
/// Handles logs of both generations ("Number of parameters: 1", "Total parameters: 1,000"), any segment names, any number of
/// summaries, LF or CR LF, and lines prefixed with colours, time stamps or the rank of a process; lines of several ranks may
/// interleave. What a summary lacks (its header, its totals, part of a segment) is computed from the rest if possible, and each
/// such case is a remark. Bytes are as precise as the log: multiples of 0.01 MB, or three digits (`summary_text_reader`).
///
/// Each summary is a profile of one memory space, "dram" for the tracker's, without whatever requires events: its provenance
/// lists what is absent and where the numbers come from. `process.rank` is the rank, and the table of `model_parameters` has the
/// number of parameters if the log has it.
///
/// Raises an error if there is no summary at all, naming `source`, the first line that looked like one, and what is missing.
/// Takes time proportional to the text.
[[nodiscard]] std::vector<profile> parse_tracker_log(std::string_view text, std::string_view source = "log");

/// The same for a file, which is read from its start with one line in memory at a time; `path` is its name for messages.
[[nodiscard]] std::vector<profile> read_tracker_log(std::FILE* file, const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI
