#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/fact_table.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

/// @file
/// Which blocks of a trace have a stack. Of headers alone, as the page is, too.

namespace memprof::inline MEMPROF_ABI {

/// Which blocks of a trace have a stack; none if `of`, its profile, does not say so.
[[nodiscard]] inline std::optional<heap_stacks> recorded_stacks_of(const profile& of) {
  auto recorded = rows_of<heap_stacks>(of.facts);
  if (recorded.size() != 1) return std::nullopt;
  return std::move(recorded[0]);
}

/// With which probability a block of that size has a stack: 1 but for small ones of a sample.
[[nodiscard]] inline double chance_of_stack(std::int64_t bytes, const heap_stacks& recorded) noexcept {
  if (recorded.sample_bytes <= 0 || bytes >= recorded.from_bytes) return 1;
  return -std::expm1(-static_cast<double>(bytes) / static_cast<double>(recorded.sample_bytes));
}

}  // namespace memprof::inline MEMPROF_ABI
