#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

/// @file
/// The folders and files of tt-mlir's own profiler: `NAME_YYYYmmdd_HHMMSS/NAME_profile.log`, and what is written beside the log.

namespace memprof::inline MEMPROF_ABI {

/// The name of a run, from its log: "decoder" for "decoder_profile.log".
[[nodiscard]] std::string tt_run_of_log(const std::filesystem::path& log);

/// The log in the folder of a run, which has the folder's name without date and time, or is the only one there. Raises an error
/// that names the folder if there is none.
[[nodiscard]] std::filesystem::path tt_log_in(const std::filesystem::path& folder);

/// Makes a new folder for a run in `base`, which is made if need be. Waits for the next second if another run began in this one.
/// Raises an error if it cannot be made.
[[nodiscard]] std::filesystem::path make_tt_run_folder(const std::filesystem::path& base, const std::string& name);

/// Writes the two files of a rank side by side, in one pass over the log, validates them and returns their number of operations.
/// The caller keeps the log. Raises an error if a file cannot be written, or they do not match.
[[nodiscard]] std::uint64_t write_tt_files(std::FILE* log, const std::filesystem::path& path, const tt_log_content& content,
                                           const tt_rank_summary& rank, const std::filesystem::path& memory,
                                           const std::filesystem::path& operations);

/// Writes the file of the compiled module's arguments. Raises an error if it cannot be written.
void write_tt_inputs_file(const tt_log_content& content, const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI
