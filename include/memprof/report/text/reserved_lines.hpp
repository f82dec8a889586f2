#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

/// @file
/// The part of the text report about what an allocator held of the device beyond what the program had allocated of it.

namespace memprof::detail {

/// Nothing if no allocator told.
void append_reserved(auto& text, const auto& space) {
  const reserved_profile& held = space.reserved;
  if (held.peak == 0) return;
  text += "  Reserved by its allocator: at most " + megabytes(held.peak) + " (" + counted(held.peak, "byte", "bytes") + "), " +
          megabytes(std::max(held.peak - space.cumulative_peak, std::int64_t{0})) + " more than was ever live, " +
          megabytes(held.current) + " at the end\n";
}

}  // namespace memprof::detail
