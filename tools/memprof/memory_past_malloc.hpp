#pragma once

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/trace/fact_table.hpp>

#include <optional>

namespace memprof_tool {

/// What a process held beyond the blocks of `malloc`, all of which were recorded, and beyond what it had when it began: mappings,
/// static data and stacks. None if it is not worth a remark beside what was resident. `readings`: its rows of `process_memory`.
[[nodiscard]] std::optional<memprof::missing_source> memory_past_malloc(const memprof::fact_table& readings);

}  // namespace memprof_tool
