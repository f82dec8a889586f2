#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/summary_lines.hpp>
#include <memprof/report/text/text_options.hpp>

#include <concepts>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// The body of `to_text`. A template, like all parts of the report, so that translation units that print no profile do not
/// compile it. Those parts are marked cold, so that the compiler spends less on them. This is neither cold nor inlined: code that
/// always calls a cold function counts as cold itself, and the caller is the program's own.
template <std::same_as<profile> Profile>
[[nodiscard, gnu::noinline]] std::string make_text(const Profile& source, const text_options& options) {
  std::string text;
  if (options.format == text_format::tracker) {
    append_tracker_lines(text, source, options);
    return text;
  }
  for (const std::string& line : summary_lines(source, options)) text += line + '\n';
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
