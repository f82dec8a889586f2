#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_options.hpp>

#include <string>

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/report/text/summary.hpp>
#endif

namespace memprof::inline MEMPROF_ABI {

/// A profile as text: answers for people, or with `text_format::tracker` the lines of tt-train's memory tracker for scripts.
///
/// The summary has at most `text_options::max_lines` lines of at most `text_options::columns` columns, however long the run was:
/// the peak, where it was and who owned it; whether it fits, if a device was named; growth per step; what is live at the end;
/// what is wrong with the numbers; and the segments, folded by name. Bytes have three significant digits in units of 1024 (KiB,
/// MiB); totals also show all their digits. Text is UTF-8. `parse_summary_text` reads back what `memprof analyze` needs.
///
/// Throws `memprof::error` if `text_options::primary_space` names no space of the profile.
#if MEMPROF_SEPARATE_COMPILATION
[[nodiscard]] std::string to_text(const profile& source, const text_options& options = {});
#else
[[nodiscard]] inline std::string to_text(const profile& source, const text_options& options = {}) {
  return detail::render_summary(source, options);
}
#endif

}  // namespace memprof::inline MEMPROF_ABI
