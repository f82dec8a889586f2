#pragma once

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_survey.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

class trace;

namespace extend {

class trace_writer;

}  // namespace extend

/// The log of tt-mlir's runtime as a source. The states before operations (`TT_RUNTIME_MEMORY_LOG_LEVEL=operation`) show what the
/// previous operation added to or took from each memory space; programs and operations are operations, and each outermost program
/// is a segment.
///
/// Levels are the log's: MiB per bank with three decimals, times banks. The log does not say whose bytes a decrease frees: for
/// `ttnn.deallocate` those of its input, else the newest block of that size, else the newest block. The file is read twice; it
/// takes memory for what is live, and 16 bytes for each block that is freed in parts. There are no times: each state counts as a
/// microsecond. If a log is cut off or has invalid lines, what precedes and surrounds them is kept, and the trace has a gap.
class tt_log_source {
 public:
  /// Reads the file for the first time. The caller keeps the file, which must be seekable. Raises an error with file and place if
  /// it has no states, or numbers that no device can have.
  tt_log_source(std::FILE* file, std::filesystem::path path);

  /// What its trace says about the capture.
  [[nodiscard]] static extend::capture_info info();
  [[nodiscard]] const tt_log_status& status() const noexcept { return status_; }
  /// Arguments of the compiled module, if the log has a dump of it.
  [[nodiscard]] const std::vector<tt_input>& inputs() const noexcept { return inputs_; }
  /// Operations whose effect no state shows: the last one of each rank.
  [[nodiscard]] const std::vector<missing_source>& unseen() const noexcept { return survey_.missing; }
  /// Peaks and fragmentation of each space.
  [[nodiscard]] std::vector<tt_memory_fact> memories() const { return survey_.memories(); }

  /// Writes everything to a `trace_writer` except the end: call `writer.finish` with the returned value. Reads the file for the
  /// second time.
  [[nodiscard]] std::string write_to(extend::trace_writer& writer);

 private:
  void add_facts(extend::trace_writer& writer) const;

  [[noreturn]] void raise_without_states() const;

  std::FILE* file_;
  std::filesystem::path path_;
  detail::tt_log_survey survey_;
  tt_log_status status_;
  std::vector<tt_input> inputs_;
};

/// What a user of a log should know besides its numbers, a sentence each.
[[nodiscard]] std::vector<std::string> remarks_on(const tt_log_source& source);

/// What there is to say about a log that has been read.
struct tt_reading {
  std::vector<std::string> remarks;  ///< `remarks_on` it
  std::string damage;                ///< why the end is missing, as a sentence without a full stop; empty: it is not
  bool is_whole = true;              ///< false: the end is missing, or some lines could not be read
};

/// Reads a log into `target`, which must be empty, and whose profile has rows for so many operations. The caller keeps the file.
/// Raises an error like `tt_log_source`.
[[nodiscard]] tt_reading read_tt_log(std::FILE* file, const std::filesystem::path& path, trace& target,
                                     std::uint32_t operations = imported_operations);

}  // namespace memprof::inline MEMPROF_ABI
