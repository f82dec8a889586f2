#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/trace/trace.hpp>

#include <memory>
#include <string>

namespace memprof_tool {

/// A trace that may become larger than the memory: what is older than its newest 64 MiB goes to a temporary file.
class growing_trace {
 public:
  growing_trace();
  ~growing_trace();
  growing_trace(const growing_trace&) = delete;
  growing_trace& operator=(const growing_trace&) = delete;

  /// What is to be filled. Only `write` and `profile` see all of it.
  [[nodiscard]] memprof::trace& target() noexcept { return target_; }

  /// As `memprof::write_trace`.
  void write(const std::string& path) const;
  /// As `memprof::profile_of`. Throws `memprof::error` if there is no room for a temporary file.
  [[nodiscard]] memprof::profile profile() const;

 private:
  class older_part;

  std::unique_ptr<older_part> older_;  ///< which `target_` writes to, and so outlives it
  memprof::trace target_;
};

}  // namespace memprof_tool
