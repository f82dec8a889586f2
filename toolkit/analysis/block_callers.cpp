#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/heap_sample.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace memprof::inline MEMPROF_ABI {

callers_of_blocks block_callers_of(const profile& of) {
  const std::optional<heap_stacks> recorded = recorded_stacks_of(of);
  if (!recorded) return {};
  callers_of_blocks callers;
  if (recorded->sample_bytes > 0) callers.from_bytes = static_cast<std::uint64_t>(recorded->from_bytes);
  const auto named = std::make_shared<std::unique_ptr<named_stacks>>();
  callers.caller = [named](const detail::label_table& names, extend::label stack) {
    if (*named == nullptr) *named = std::make_unique<named_stacks>(names);
    return (*named)->caller(stack);
  };
  return callers;
}

}  // namespace memprof::inline MEMPROF_ABI
