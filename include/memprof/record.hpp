#pragma once

/// @file
/// Everything for files that only annotate the program: `track_operation`, `adopt_operation`, `snapshot`, `memory_checkpoint`,
/// `annotate` and `mark_use`. Costs a fraction of <memprof/memprof.hpp>, which is for the file that captures.

#include <memprof/record/adopt_operation.hpp>
#include <memprof/record/annotate.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/record/track_operation.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/category.hpp>
