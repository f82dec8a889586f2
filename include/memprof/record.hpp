#pragma once

/// @file
/// What a file needs that only marks what a program does: `track_operation`, `snapshot`, `memory_checkpoint` and `annotate`. It
/// costs a fraction of <memprof/memprof.hpp>, which is for the file that captures.

#include <memprof/record/annotate.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/record/track_operation.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/category.hpp>
