#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/page/html_options.hpp>

#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

/// A comparison as one HTML page that opens from disk, with both runs on one axis: docs/compare.md. An existing file is replaced,
/// or left as it was on failure; errors name the path and the reason. Needs the component `json`.
void write_html(const comparison& of, const std::filesystem::path& path, const html_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
