#include "recorded_stacks.hpp"

#include "recording.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/trace_source.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace memprof_tool {

recorded_stacks read_stacks(const std::string& path, std::uint32_t full_segments) {
  const memprof::detail::file_handle file = open_recording(path);
  recorded_stacks read{read_recording(file.get(), path, full_segments), {}};
  memprof::profile& profile = read.content.profile;
  if (!read.content.complaint.empty() && profile.spaces.empty()) memprof::detail::raise(read.content.complaint);
  require_something(profile, path);
  if (profile.provenance.file.empty()) profile.provenance.file = path;
  read.stacks = read.content.is_trace ? memprof::stack_table_of(memprof::trace_file{file.get(), path}, true, true, {},
                                                                memprof::block_callers_of(profile))
                                      : memprof::stack_table_of(profile);
  return read;
}

const memprof::space_profile& space_of(const memprof::profile& profile, const std::string& asked) {
  if (!asked.empty()) return profile.space(asked);
  return *std::max_element(profile.spaces.begin(), profile.spaces.end(),
                           [](const auto& left, const auto& right) { return left.cumulative_peak < right.cumulative_peak; });
}

}  // namespace memprof_tool
