#pragma once

/// @file
/// What all other files of a program leave to one where `MEMPROF_SEPARATE_COMPILATION` is 1: captures, profiles, text and JSON.
/// In exactly one .cpp of the program, and of each shared library that uses memprof. Link with `memprof::compiled` in place of
/// it.
///
/// @code
/// // memprof.cpp; all files are compiled with -DMEMPROF_SEPARATE_COMPILATION=1
/// #include <memprof/implementation.hpp>
/// @endcode

#include <memprof/config.hpp>
#include <memprof/profile/find_in_profile.hpp>
#include <memprof/profile/fold_trace.hpp>
#include <memprof/profile/json_text.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/capture_control.hpp>
#include <memprof/record/session_life.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/make_text.hpp>
#include <memprof/report/text/text_options.hpp>

#include <string>

#if MEMPROF_SEPARATE_COMPILATION

#if !MEMPROF_ENABLED
#error "<memprof/implementation.hpp> needs MEMPROF_ENABLED=1: files that record may be linked with those that leave it out"
#endif

namespace memprof::inline MEMPROF_ABI {

std::string to_text(const profile& source, const text_options& options) { return detail::make_text(source, options); }

}  // namespace memprof::inline MEMPROF_ABI

#endif
