#pragma once

#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/page/html_options.hpp>

#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

/// A waterfall as one HTML page that opens from disk: docs/estimate.md. An existing file is replaced, or left as it was on
/// failure; errors name the path and the reason. Needs the component `json`.
void write_html(const waterfall& of, const std::filesystem::path& path, const html_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
