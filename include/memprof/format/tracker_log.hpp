#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/format/log_line.hpp>
#include <memprof/format/summary_text_reader.hpp>
#include <memprof/format/tracker_reader.hpp>
#include <memprof/profile/profile.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The memory summaries in a log of tt-train's memory tracker, or of a program that prints those of `to_text` (in either format),
/// in the order in which they begin.
///
/// It reads logs of both generations ("Number of parameters: 1", "Total parameters: 1,000"), any names of segments, any number of
/// summaries, lines ended by LF or CR LF, and lines with colours, time stamps or the rank of a process before them; lines of
/// several ranks may interleave. What a summary lacks (its header, its totals, part of a segment) is computed from the rest
/// where it can be, and each such case is a remark. Bytes are what the log prints: multiples of 0.01 MB, or three digits
/// (`summary_text_reader`).
///
/// Each summary is a profile of one memory space, "dram" for the tracker's, with what only events could tell left out: its
/// provenance says what that is, and where the numbers come from; `process.rank` is the rank, and the table of `model_parameters`
/// has the number of parameters, if the log tells them.
///
/// Raises an error if there is no summary at all: it names `source`, the first line that looked like one, and what is missing.
/// The cost is proportional to the text.
[[nodiscard]] inline std::vector<profile> parse_tracker_log(std::string_view text, std::string_view source = "log") {
  detail::tracker_reader reader{source};
  detail::summary_text_reader answers{source};
  std::size_t number = 0;
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    // A progress bar returns to the begin of its line, and what follows may share the line with it.
    while (!line.empty()) {
      const std::size_t carriage_return = line.find('\r');
      const std::string visible = detail::visible_text(line.substr(0, carriage_return));
      reader.read(visible, number);
      answers.read(visible, number);
      line = carriage_return == std::string_view::npos ? std::string_view{} : line.substr(carriage_return + 1);
    }
  }
  std::vector<profile> answered = answers.finish();
  return std::move(reader).finish(std::move(answered), answers.reason());
}

}  // namespace memprof::inline MEMPROF_ABI
