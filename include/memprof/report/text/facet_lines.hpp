#pragma once

#include <memprof/report/text/facet/lifetimes.hpp>
#include <memprof/report/text/page.hpp>

#include <vector>

/// @file
/// The sections of facets that a profile has only on request (`space_profile::facets`). The others have their places among the
/// answers of summary_lines.hpp.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] std::vector<page_section> facet_sections(const auto& space) { return {lifetime_section(space)}; }

}  // namespace memprof::inline MEMPROF_ABI::detail
