#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// @file
/// What a run's summary says, as JSON of a few kilobytes with every number's caveats; docs/summary.schema.json is its JSON
/// Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view summary_json_format = "memprof-summary";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t summary_json_version = 1;

/// The verdict, the caveats and, of the eight memory spaces with the greatest peaks, the numbers with the ten largest owners.
[[nodiscard]] nlohmann::ordered_json summary_json(const profile& of);

/// One sentence about the memory space with the greatest peak: the peak and where it was, who held most, whether it fits and
/// grows.
[[nodiscard]] std::string summary_sentence(const profile& of);

}  // namespace memprof::inline MEMPROF_ABI
