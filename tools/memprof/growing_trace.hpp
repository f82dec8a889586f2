#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/trace.hpp>

#include <cstdio>
#include <memory>

namespace memprof_tool {

/// A trace that may grow larger than memory: all but its newest 64 MiB go to a temporary file.
class growing_trace {
 public:
  growing_trace();
  ~growing_trace();
  growing_trace(const growing_trace&) = delete;
  growing_trace& operator=(const growing_trace&) = delete;

  /// The trace to fill. Only the other functions see all of it.
  [[nodiscard]] memprof::trace& target() noexcept { return target_; }

  // These throw `output_error` if the temporary file cannot be written.

  /// Writes it as `memprof::write_trace` does; false if that fails, and errno says why.
  [[nodiscard]] bool write(std::FILE* file) const;
  /// As `memprof::profile_of`.
  [[nodiscard]] memprof::profile profile(memprof::facets asked) const;
  /// As `memprof::trace::visit`.
  void visit(memprof::detail::trace_visitor_view& visitor) const;
  /// All of it in a temporary file, which the first call makes.
  [[nodiscard]] std::FILE* whole() const;

 private:
  class older_part;

  std::unique_ptr<older_part> older_;  ///< outlives `target_`, which writes to it
  memprof::trace target_;
  mutable memprof::detail::file_handle whole_;
};

}  // namespace memprof_tool
