#pragma once

#include "foreign_recording.hpp"
#include "growing_trace.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace memprof_tool {

/// A recording of any kind, for whoever writes it in another format: events that can be replayed, unless it is a profile, and the
/// profile.
class conversion_input {
 public:
  /// Opens the file, and reads it if it is another tool's. Throws `memprof::error` if it cannot be read, or if `is_foreign` asks
  /// for another tool's and it is memprof's own.
  conversion_input(const std::string& path, const reading_options& options, bool is_foreign, const std::string& subcommand);

  [[nodiscard]] bool is_own() const noexcept { return foreign_ == nullptr; }
  [[nodiscard]] bool has_events() const noexcept { return foreign_ != nullptr || trace_.has_value(); }
  /// Only if it has some.
  [[nodiscard]] memprof::trace_source_view events() const;
  /// Made or read by the first call. Throws `memprof::error` if the file cannot be read.
  [[nodiscard]] const memprof::profile& profile(memprof::facets asked = memprof::facets::none);

  /// Writes the trace as it is, or packed or unpacked.
  void write_trace(const std::string& output, bool packs);

  /// What is left to say about a recording that could not be read to its end, as a sentence without a final full stop; empty:
  /// nothing. `output` is where its beginning is now.
  [[nodiscard]] std::string complaint(const std::string& output) const;
  [[nodiscard]] bool is_whole() const noexcept { return read_.is_whole && read_.damage.empty() && complaint_.empty(); }

 private:
  std::string path_;
  memprof::detail::file_handle file_;
  std::optional<memprof::trace_file> trace_;  ///< memprof's own
  std::unique_ptr<growing_trace> foreign_;    ///< another tool's
  reading_result read_;                       ///< of `foreign_`
  std::optional<memprof::profile> profile_;
  std::string complaint_;  ///< about memprof's own trace
};

}  // namespace memprof_tool
