#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The sum of several callers: like one of them, without a name.
[[nodiscard]] nlohmann::ordered_json caller_json(const caller_bytes& row) {
  return {{"bytes", std::llround(row.bytes)},
          {"blocks", std::llround(row.blocks)},
          {"standard_error_bytes",
           row.is_estimated ? nlohmann::ordered_json(std::llround(row.standard_error)) : nlohmann::ordered_json(nullptr)}};
}

}  // namespace

nlohmann::ordered_json to_json(const peak_callers& of) {
  constexpr std::size_t most_callers = 10;
  if (!of.has_rows()) return nullptr;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  caller_bytes others;
  double variance = 0;
  for (const caller_bytes& row : of.callers) {
    if (rows.size() < most_callers) {
      nlohmann::ordered_json shown{{"caller", row.caller}};
      shown.update(caller_json(row));
      rows.push_back(shown);
      continue;
    }
    others.bytes += row.bytes;
    others.blocks += row.blocks;
    others.is_estimated = others.is_estimated || row.is_estimated;
    variance += row.standard_error * row.standard_error;
  }
  others.standard_error = std::sqrt(variance);
  nlohmann::ordered_json other{{"callers", of.callers.size() - rows.size()}};
  other.update(caller_json(others));
  return {{"space", of.space},
          {"peak_bytes", of.bytes},
          {"rows", rows},
          {"others", other},
          {"without_stack_bytes", of.bytes_without},
          {"unsampled_bytes", of.unsampled_bytes},
          {"unsampled_blocks", of.unsampled_blocks},
          {"sampled_blocks", of.sampled_blocks},
          {"missing_blocks", of.missing_blocks}};
}

}  // namespace memprof::inline MEMPROF_ABI
