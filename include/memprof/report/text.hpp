#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/summary_lines.hpp>
#include <memprof/report/text/text_options.hpp>

#include <concepts>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// A profile as text: answers for people, or with `text_format::tracker` the lines of tt-train's memory tracker for scripts.
///
/// The summary has at most `text_options::max_lines` lines of at most `text_options::columns` columns, however long the run was:
/// the peak, where it was and whose; whether it fits, if a device was named; growth per step; what is live at the end; what is
/// wrong with the numbers; and the segments, folded by name. Bytes have three significant digits, in units of 1024 (KiB, MiB),
/// and totals all their digits too. Text is UTF-8. `parse_summary_text` reads back what `memprof analyze` needs.
///
/// Throws `memprof::error` if `text_options::primary_space` names no space of the profile. A template, as are the parts of the
/// report, only so that units that print no profile do not compile it.
template <std::same_as<profile> Profile = profile>
[[nodiscard]] std::string to_text(const Profile& source, const text_options& options = {}) {
  std::string text;
  if (options.format == text_format::tracker) {
    detail::append_tracker_lines(text, source, options);
    return text;
  }
  for (const std::string& line : detail::summary_lines(source, options)) text += line + '\n';
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
