#pragma once

#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What `memprof xplane` says, as JSON of a few kilobytes with every number's caveats; docs/xplane.schema.json is its JSON
/// Schema. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view xplane_json_format = "memprof-xplane";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t xplane_json_version = 1;

/// What a program needs according to one worker's profile.
struct hlo_worker {
  std::string host;
  std::string program;
  hlo_attribution found;
};

/// The programs, which are sorted by peak: the 32 with the greatest.
[[nodiscard]] nlohmann::ordered_json xplane_json(const std::vector<hlo_listed_program>& programs, std::int64_t space,
                                                 std::vector<std::string> caveats);

/// One program: the 16 workers with the greatest peaks, and up to `most_blocks` blocks (at most 64) of the first of them.
/// `workers` must not be empty.
[[nodiscard]] nlohmann::ordered_json xplane_json(const std::vector<hlo_worker>& workers, const hlo_class_rules& rules,
                                                 std::int64_t space, std::size_t most_blocks, std::vector<std::string> caveats);

}  // namespace memprof::inline MEMPROF_ABI
