#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/heap_sample.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>

/// @file
/// Who asked for the blocks of a trace with stacks, for analyses that sum by it.

namespace memprof::inline MEMPROF_ABI {

/// Names who asked for the blocks of which that is known: all, or the large ones if the others were sampled. Without stacks,
/// nobody. `of` is the profile of the trace.
[[nodiscard]] callers_of_blocks block_callers_of(const profile& of);

}  // namespace memprof::inline MEMPROF_ABI
