#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/run_survey.hpp>

#include <cstdint>
#include <vector>

/// @file
/// The stretches of a run for which a page has separate tables.

namespace memprof::inline MEMPROF_ABI::detail {

/// The frames of a page, still empty: the whole run, and steps.
[[nodiscard]] std::vector<page_frame> frames_for_page(const run_survey& survey, const std::vector<std::uint8_t>& spaces,
                                                      const page_owners& owners, const profile& of);

}  // namespace memprof::inline MEMPROF_ABI::detail
