#pragma once

#include <memprof/config.hpp>

#include <string>

/// @file
/// What lets a session leave another file than memprof's own profile.

namespace memprof::inline MEMPROF_ABI {

struct profile;

namespace detail {

/// The JSON of pie's memory profiler of a run, from its trace and its profile so far; from the profile alone if `trace_file` is
/// empty. Set by <memprof/toolkit/format/pie/session_file.hpp>, otherwise null.
using session_text_writer = std::string (*)(const profile& run, const std::string& trace_file);
inline constinit session_text_writer write_session_text = nullptr;

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
