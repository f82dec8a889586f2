#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

std::optional<heap_stacks> recorded_stacks_of(const profile& of) {
  auto recorded = rows_of<heap_stacks>(of.facts);
  if (recorded.size() != 1) return std::nullopt;
  return std::move(recorded[0]);
}

callers_of_blocks block_callers_of(const profile& of) {
  const std::optional<heap_stacks> recorded = recorded_stacks_of(of);
  if (!recorded) return {};
  callers_of_blocks callers;
  if (recorded->sample_bytes > 0) callers.from_bytes = static_cast<std::uint64_t>(recorded->from_bytes);
  const auto named = std::make_shared<std::unique_ptr<named_stacks>>();
  callers.caller = [named](const detail::label_table& names, label stack) {
    if (*named == nullptr) *named = std::make_unique<named_stacks>(names);
    return (*named)->caller(stack);
  };
  return callers;
}

double chance_of_stack(std::int64_t bytes, const heap_stacks& recorded) noexcept {
  if (recorded.sample_bytes <= 0 || bytes >= recorded.from_bytes) return 1;
  return -std::expm1(-static_cast<double>(bytes) / static_cast<double>(recorded.sample_bytes));
}

}  // namespace memprof::inline MEMPROF_ABI
