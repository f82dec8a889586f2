#include "recording.hpp"

#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

namespace memprof_tool {

recording read_recording(const std::string& path) {
  recording result;
  result.is_trace = memprof::is_trace_file(path);
  if (!result.is_trace) {
    result.profile = memprof::read_json(path);
    return result;
  }
  memprof::trace_file_status status;
  result.profile = memprof::profile_of(path, status);
  if (!status.damage.empty()) {
    result.complaint = status.damage + "; the numbers are those of what comes before";
  } else if (!status.has_ended) {
    result.complaint = "'" + path + "' was written before its capture had ended; the numbers are those so far";
  }
  return result;
}

}  // namespace memprof_tool
