#pragma once

#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdio>
#include <filesystem>

namespace memprof {

/// The profile of what is in a trace: that of its capture, but for the `cost`. Linear in the events, some 30 million a second.
[[nodiscard]] inline profile profile_of(const trace& source) {
  trace_fold fold;
  source.visit(fold);
  return build_profile_of(fold);
}

/// The same of a trace in a file, with what was found of it in `status`. A file that is cut off or damaged gives the profile of
/// what comes before, which is not `exact`. Raises an error as `read_trace` does.
[[nodiscard]] inline profile profile_of(const std::filesystem::path& path, trace_file_status& status) {
  trace_fold fold;
  status = read_trace(path, fold);
  return build_profile_of(fold);
}

/// The same where it does not matter why a profile is not `exact`.
[[nodiscard]] inline profile profile_of(const std::filesystem::path& path) {
  trace_file_status status;
  return profile_of(path, status);
}

/// The same of a file that is open, from where it stands; `path` is its name for messages.
[[nodiscard]] inline profile profile_of(std::FILE* file, const std::filesystem::path& path, trace_file_status& status) {
  trace_fold fold;
  status = read_trace(file, path, fold);
  return build_profile_of(fold);
}

}  // namespace memprof
