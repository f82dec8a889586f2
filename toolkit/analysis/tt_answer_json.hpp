#pragma once

#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What `memprof tt-mlir analyze` says, as JSON of a few kilobytes with every number's caveats; docs/tt_mlir.schema.json is its
/// JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view tt_mlir_json_format = "memprof-tt-mlir";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t tt_mlir_json_version = 1;

/// A log and the files that were written beside it.
struct tt_analysis {
  std::string log;
  std::vector<std::string> files{};
  std::vector<tt_rank_summary> ranks{};
  std::vector<tt_memory_fact> memories{};
  std::int64_t inputs = 0;
  std::vector<std::string> remarks{};
};

/// One sentence about the kind of memory that is fullest in proportion to its size: its peak, and before which operation.
[[nodiscard]] std::string tt_sentence(const std::vector<tt_memory_fact>& memories);

/// The verdict, the caveats, at most 32 kinds of memory, and at most 16 ranks with 16 const-evals each.
[[nodiscard]] nlohmann::ordered_json to_json(const tt_analysis& of);

}  // namespace memprof::inline MEMPROF_ABI
