#pragma once

/// @file
/// memprof: where a training loop's memory goes. This header is all that a program needs for a text summary, and requires no
/// other library. Each further feature is one more include: `<memprof/profile/json.hpp>`, `<memprof/backend/new_delete.hpp>`.
///
/// @namespace memprof
/// The public interface. Anything in a namespace `detail` may change at any time.
///
/// @namespace memprof::extend
/// What only backends, own sources of events, readers and visitors of traces need.

#include <memprof/backend/cpu.hpp>
#include <memprof/backend/no_dispatch.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record.hpp>
#include <memprof/record/adopt_operation.hpp>
#include <memprof/record/annotate.hpp>
#include <memprof/record/capture.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/record/track_operation.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/version.hpp>

#include <cstdio>

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Prints the summary of the active capture so far, or of the last one, on stdout; on a terminal in colour, and no wider than it.
inline void print_memory_usage(const text_options& options = {}) {
  const profile current = current_profile();
  const detail::internal_guard hidden;  // the text must not appear in what it reports
  std::fputs(to_text(current, detail::fitted_to(stdout, options)).c_str(), stdout);
}

}  // namespace enabled
#else
inline namespace disabled {

inline void print_memory_usage(const text_options& = {}) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
