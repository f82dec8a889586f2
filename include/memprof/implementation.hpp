#pragma once

/// @file
/// Implements what all other files leave out if `MEMPROF_SEPARATE_COMPILATION` is 1: captures, profiles, text and JSON. Include
/// it in exactly one .cpp of the program, and of each shared library that uses memprof; or link `memprof::compiled` instead.
///
/// @code
/// // memprof.cpp; all files are compiled with -DMEMPROF_SEPARATE_COMPILATION=1
/// #include <memprof/implementation.hpp>
/// @endcode

// For the files that record, and for those of a program that leaves recording out by default: their profiles are empty, but can
// be printed.
#if defined(MEMPROF_ENABLED) && !MEMPROF_ENABLED
#undef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

#include <memprof/config.hpp>
#include <memprof/profile/find_in_profile.hpp>
#include <memprof/profile/fold_trace.hpp>
#include <memprof/profile/json_text.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/capture_control.hpp>
#include <memprof/record/session_life.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/summary.hpp>
#include <memprof/report/text/text_options.hpp>

#include <string>

#if MEMPROF_SEPARATE_COMPILATION

#if !MEMPROF_ENABLED
#error "include <memprof/implementation.hpp> before any other header of memprof"
#endif

namespace memprof::inline MEMPROF_ABI {

std::string to_text(const profile& source, const text_options& options) { return detail::render_summary(source, options); }

}  // namespace memprof::inline MEMPROF_ABI

#endif
