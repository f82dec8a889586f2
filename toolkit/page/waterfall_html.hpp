#pragma once

#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>
#include <memprof/toolkit/page/page.hpp>

#include <filesystem>

namespace memprof::inline MEMPROF_ABI {

/// A waterfall as one HTML page that opens from disk: docs/estimate.md. An existing file is replaced, or left as it was on
/// failure; errors name the path and the reason. Needs the component `json`.
inline void write_html(const waterfall& of, const std::filesystem::path& path, const html_options& options = {}) {
  detail::page_data data{to_json(of), {}};
  data.run["title"] = options.title.empty() ? "Waterfall" : options.title;
  data.run["notes"] = options.notes;
  data.run["detail"] = nullptr;  // no columns
  detail::write_page(data, path, options);
}

}  // namespace memprof::inline MEMPROF_ABI
