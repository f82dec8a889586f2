#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>

#include <vector>

/// @file
/// The answers of facets that a profile has only if they were asked for (`space_profile::facets`).

namespace memprof::detail {

/// All of them.
[[nodiscard]] std::vector<page_section> facet_sections(const auto&) { return {}; }

}  // namespace memprof::detail
