#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/page_stacks.hpp>
#include <memprof/toolkit/page/run_frames.hpp>
#include <memprof/toolkit/page/run_survey.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// What only a trace has, in the form used by a page: viewer/DATA.md and viewer/src/data/contract.ts.

namespace memprof::inline MEMPROF_ABI::detail {

/// The contents of a page's tables before they are encoded.
struct page_detail {
  const run_survey& survey;
  const std::vector<std::uint8_t>& spaces;  ///< ids, in the order of the profile
  const page_owners& owners;
  const std::vector<page_frame>& frames;
  const run_frames& found;
  const std::optional<page_stacks>& stacks;
};

/// The contents as a page has them.
struct page_tables {
  nlohmann::ordered_json detail;
  std::string columns;
};

/// Encodes the contents. Frames except the first are left out if they would make the columns longer than `max_bytes`.
[[nodiscard]] page_tables tables_of(const page_detail& source, std::size_t max_bytes);

}  // namespace memprof::inline MEMPROF_ABI::detail
