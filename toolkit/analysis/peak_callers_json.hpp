#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>

#include <nlohmann/json_fwd.hpp>

namespace memprof::inline MEMPROF_ABI {

/// Who asked for what was live at the peak, with the ten rows of most bytes and the sum of the others: the key `callers` of
/// docs/summary.schema.json. Null if there is nothing to say, as in the text.
[[nodiscard]] nlohmann::ordered_json to_json(const peak_callers& of);

}  // namespace memprof::inline MEMPROF_ABI
