#pragma once

#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/blocks.hpp>
#include <memprof/toolkit/format/heaptrack/operations.hpp>
#include <memprof/toolkit/format/heaptrack/stack_labels.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>
#include <memprof/toolkit/format/line_reader.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

/// What a heaptrack recording says about itself: the only row of the table `heaptrack_recording` of its trace.
struct heaptrack_recording_fact {
  std::string heaptrack_version;
  std::int64_t file_version = 0;
  std::int64_t is_attached = 0;          ///< 1 if heaptrack attached to a running program
  std::int64_t system_memory_bytes = 0;  ///< of the machine; 0 if not recorded
  std::int64_t peak_rss_bytes = 0;       ///< of the process, including heaptrack; 0 if not recorded
  std::int64_t peak_rss_at_ns = 0;

  static constexpr std::string_view table = "heaptrack_recording";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("heaptrack_version", row.heaptrack_version);
    visit("file_version", row.file_version);
    visit("is_attached", row.is_attached);
    visit("system_memory_bytes", row.system_memory_bytes);
    visit("peak_rss_bytes", row.peak_rss_bytes);
    visit("peak_rss_at_ns", row.peak_rss_at_ns);
  }
};

/// Whether an unpacked file begins as heaptrack's recordings do, including raw ones. The file must be at its start and is left
/// there.
[[nodiscard]] bool is_heaptrack(std::FILE* file);

/// An unpacked heaptrack recording, interpreted as the program `heaptrack` writes it: versions 1 to 3 of its format.
/// docs/formats.md says what is lost and how the rest is mapped.
///
/// The stacks of allocations are those of the trace (docs/stacks.md), with the names that heaptrack found; or their frames become
/// operations, if these are asked for.
///
/// Read once, line by line. Takes memory for the recording's tables (strings, instruction pointers, stacks, and an entry for each
/// pair of a size and a stack) and 16 bytes for each block at the maximum number of live blocks.
class heaptrack_source {
 public:
  /// Reads the lines that describe the recording. The caller keeps the file; `path` is its name for messages. `operations` says
  /// which frames become operations; without, the trace has the stacks themselves.
  heaptrack_source(std::FILE* file, const std::filesystem::path& path, std::optional<stack_frames> operations = {});
  heaptrack_source(const heaptrack_source&) = delete;
  heaptrack_source& operator=(const heaptrack_source&) = delete;

  /// The command line of the program. The recording has no wall-clock time.
  [[nodiscard]] const extend::capture_info& info() const noexcept { return info_; }

  /// Writes everything to a `trace_writer` made with `info`, as the memory space `cpu`; the caller finishes the trace. Raises an
  /// error that names the line if something cannot be read.
  void write_to(extend::trace_writer& writer);

  /// Why reading ended early, as a sentence without a full stop; empty if it did not.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Whether heaptrack attached to a running program: its earlier allocations are not counted.
  [[nodiscard]] bool is_attached() const noexcept { return recording_.is_attached != 0; }

 private:
  void read_version(std::string_view line);

  /// Reads a line of metadata; false if it is any other line.
  [[nodiscard]] bool read_head(std::string_view line);

  void read_table_entry(std::string_view line);

  /// In version 3 the string is preceded by its length.
  [[nodiscard]] const char* read_string(std::string_view text);

  [[nodiscard]] std::uint64_t kind_in(std::string_view line) const;
  [[nodiscard]] std::int64_t time_in(std::string_view line);

  detail::line_reader lines_;
  bool has_line_ = false;  ///< the current line of `lines_` has not been read yet
  extend::capture_info info_;
  heaptrack_recording_fact recording_;
  std::uint64_t page_bytes_ = 0;
  std::int64_t now_ms_ = 0;
  detail::heaptrack_stacks stacks_;
  std::optional<detail::heaptrack_operations> operations_;
  detail::heaptrack_stack_labels labels_{stacks_};
  detail::heaptrack_blocks blocks_;
  bool is_whole_ = false;
  std::string damage_;
};

}  // namespace memprof::inline MEMPROF_ABI
