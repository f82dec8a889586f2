// The one header alone in the include path: first what it holds always, then its parts, each by its macro.
#include <memprof/memprof.hpp>

#define MEMPROF_WITH_ALL
#include <memprof/memprof.hpp>

#define MEMPROF_WITH_NEW_DELETE
#include <memprof/memprof.hpp>

#if __has_include(<nlohmann/json.hpp>)
#define MEMPROF_WITH_JSON
#include <memprof/memprof.hpp>
#endif

#include <cstdio>
#include <string>

namespace {

int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  ++faults;
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture({.trace_file = "single_header.memtrace"});
  {
    const auto scope = memprof::track_operation<"weights">();
    delete[] new char[1000];
  }
  memprof::snapshot("FORWARD_PASS");
  capture.end();
  const memprof::profile profile = capture.profile();
  check(profile.spaces.size() == 1 && profile.spaces[0].segments[0].segment_peak >= 1000, "new is not recorded");

  memprof::trace_file_status status;
  check(memprof::profile_of("single_header.memtrace", status).spaces == profile.spaces, "the trace file has another profile");
#ifdef MEMPROF_WITH_JSON
  memprof::write_json(profile, "single_header.json");
  check(memprof::read_json("single_header.json") == profile, "JSON has another profile");
  const memprof::session session;
  check(!session.is_active(), "a session that nobody asked for");
#endif
  return faults;
}
