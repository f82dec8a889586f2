#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Takes a log line by line.
class tracker_log_lines {
 public:
  explicit tracker_log_lines(std::string_view source) : reader_{source}, answers_{source} {}

  /// The next line, without its LF.
  void read(std::string_view line) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (++number_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    // A progress bar returns to the start of its line, and what follows may share that line.
    while (!line.empty()) {
      const std::size_t carriage_return = line.find('\r');
      const std::string visible = visible_text(line.substr(0, carriage_return));
      reader_.read(visible, number_);
      answers_.read(visible, number_);
      line = carriage_return == std::string_view::npos ? std::string_view{} : line.substr(carriage_return + 1);
    }
  }
  [[nodiscard]] std::vector<profile> finish() {
    std::vector<profile> answered = answers_.finish();
    return std::move(reader_).finish(std::move(answered), answers_.reason());
  }

 private:
  tracker_reader reader_;
  summary_text_reader answers_;
  std::size_t number_ = 0;
};

}  // namespace detail

/// The memory summaries in a log of tt-train's memory tracker, or of a program that prints those of `to_text` (in either format),
/// in the order in which they begin.
///
/// Handles logs of both generations ("Number of parameters: 1", "Total parameters: 1,000"), any segment names, any number of
/// summaries, LF or CR LF, and lines prefixed with colours, time stamps or the rank of a process; lines of several ranks may
/// interleave. What a summary lacks (its header, its totals, part of a segment) is computed from the rest if possible, and each
/// such case is a remark. Bytes are as precise as the log: multiples of 0.01 MB, or three digits (`summary_text_reader`).
///
/// Each summary is a profile of one memory space, "dram" for the tracker's, without whatever requires events: its provenance
/// lists what is absent and where the numbers come from. `process.rank` is the rank, and the table of `model_parameters` has the
/// number of parameters if the log has it.
///
/// Raises an error if there is no summary at all, naming `source`, the first line that looked like one, and what is missing.
/// Takes time proportional to the text.
[[nodiscard]] inline std::vector<profile> parse_tracker_log(std::string_view text, std::string_view source = "log") {
  detail::tracker_log_lines lines{source};
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.read(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines.finish();
}

/// The same for a file, which is read from its start with one line in memory at a time; `path` is its name for messages.
[[nodiscard]] inline std::vector<profile> read_tracker_log(std::FILE* file, const std::filesystem::path& path) {
  detail::byte_reader in{file, path};
  detail::tracker_log_lines lines{path.string()};
  std::string line;
  for (std::uint64_t number = 1; detail::next_line(in, line, number); ++number) lines.read(line);
  return lines.finish();
}

}  // namespace memprof::inline MEMPROF_ABI
