#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

/// @file
/// Files that memprof and other programs write for viewers, and that no reader takes.

namespace memprof_tool {

/// Throws `memprof::error` if a file is such an export, with what it is, what it lacks, and what to give instead. The file is at
/// its beginning before and after.
void refuse_export(std::FILE* file, const std::string& path);

/// The same for the beginning of a file, of 4,096 bytes or more.
void refuse_export(std::string_view begin, const std::string& path);

/// The same for a folder, which may be one of tables.
void refuse_tables(const std::filesystem::path& folder);

}  // namespace memprof_tool
