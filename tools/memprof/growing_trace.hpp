#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/trace/trace.hpp>

#include <memory>
#include <string>

namespace memprof_tool {

/// A trace that may grow larger than memory: all but its newest 64 MiB go to a temporary file.
class growing_trace {
 public:
  growing_trace();
  ~growing_trace();
  growing_trace(const growing_trace&) = delete;
  growing_trace& operator=(const growing_trace&) = delete;

  /// The trace to fill. Only `write` and `profile` see all of it.
  [[nodiscard]] memprof::trace& target() noexcept { return target_; }

  /// As `memprof::write_trace`.
  void write(const std::string& path) const;
  /// As `memprof::profile_of`. Throws `memprof::error` if the temporary file cannot be written.
  [[nodiscard]] memprof::profile profile() const;

 private:
  class older_part;

  std::unique_ptr<older_part> older_;  ///< outlives `target_`, which writes to it
  memprof::trace target_;
};

}  // namespace memprof_tool
