#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>

#include <cstdint>
#include <optional>

/// @file
/// Who asked for the blocks of a trace with stacks, for analyses that sum by it.

namespace memprof::inline MEMPROF_ABI {

/// Which blocks of a trace have a stack; none if `of`, its profile, does not say so.
[[nodiscard]] std::optional<heap_stacks> recorded_stacks_of(const profile& of);

/// Names who asked for the blocks of which that is known: all, or the large ones if the others were sampled. Without stacks,
/// nobody. `of` is the profile of the trace.
[[nodiscard]] callers_of_blocks block_callers_of(const profile& of);

/// With which probability a block of that size has a stack: 1 but for small ones of a sample.
[[nodiscard]] double chance_of_stack(std::int64_t bytes, const heap_stacks& recorded) noexcept;

}  // namespace memprof::inline MEMPROF_ABI
