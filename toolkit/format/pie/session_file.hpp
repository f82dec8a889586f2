#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/session_text.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>

/// @file
/// Sessions that leave the JSON of pie's memory profiler: docs/session.md.
///
/// A program that includes this anywhere and links `memprof::toolkit` takes `session_options::format` and MEMPROF_FORMAT=session.

namespace memprof::inline MEMPROF_ABI::detail {

/// Lets sessions write the format; set before `main`.
inline const bool writes_session_text = (write_session_text = session_text_of, true);

}  // namespace memprof::inline MEMPROF_ABI::detail
