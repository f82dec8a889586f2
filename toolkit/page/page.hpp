#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_bounds.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/page/html_options.hpp>

#include <filesystem>
#include <string>

/// @file
/// What a page is made of, before it is written.

namespace memprof::inline MEMPROF_ABI::detail {

/// The data of a page: the two blocks described in viewer/DATA.md.
struct page_data {
  nlohmann::ordered_json run;
  std::string columns;  ///< empty if `run["detail"]` is null
};

[[nodiscard]] page_data data_for_page(profile of, const html_options& options);

/// The page of a trace, which is read twice. Within `bounds`, if given, which a trace from elsewhere needs.
[[nodiscard]] page_data data_for_page(const trace_source_view& source, const html_options& options,
                                      const trace_bounds* bounds = nullptr);

/// Writes a page. An existing file is replaced, or left as it was on failure.
void write_page(const page_data& data, const std::filesystem::path& path, const html_options& options);

}  // namespace memprof::inline MEMPROF_ABI::detail
