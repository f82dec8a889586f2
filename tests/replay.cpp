// Linked into every test program: whenever one of its captures is asked for a profile, the capture's trace, in memory and through
// a file, has to give the same one.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/trace/trace_file.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

memprof::trace kept;

memprof::trace* trace_for_capture() noexcept {
  kept = memprof::trace{};
  return &kept;
}

template <class T>
void require_equal(const T& replayed, const T& live, const char* what, const char* from) {
  if (replayed == live) return;
  std::fprintf(stderr, "replay: %s of the profile from the trace %s differ from the capture's own\n", what, from);
  std::abort();
}

void require_equal(const memprof::profile& replayed, const memprof::profile& live, const char* from) {
  require_equal(replayed.segments, live.segments, "segments", from);
  for (const memprof::space_profile& space : live.spaces) {
    const memprof::space_profile* const found = replayed.find_space(space.name);
    require_equal(found != nullptr && *found == space, true, ("numbers of the space " + space.name).c_str(), from);
  }
  require_equal(replayed.operations, live.operations, "operations", from);
  require_equal(replayed.anomalies, live.anomalies, "anomalies", from);
  require_equal(replayed.facts, live.facts, "facts", from);
  require_equal(replayed.exact, live.exact, "exactness", from);
  memprof::profile comparable = replayed;
  comparable.cost = live.cost;
  require_equal(comparable, live, "other fields", from);
}

void compare(const memprof::trace& trace, const memprof::profile& live) noexcept {
  if (trace.left_out() != 0) return;
  require_equal(memprof::profile_of(trace), live, "in memory");
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("memprof_replay_" + std::to_string(getpid()) + ".memtrace");
  memprof::write_trace(trace, path);
  memprof::trace_file_status status;
  const memprof::profile from_file = memprof::profile_of(path, status);
  std::filesystem::remove(path);
  require_equal(status.damage.empty(), true, "chunks", "in a file");
  require_equal(from_file, live, "in a file");
}

constexpr memprof::detail::capture_watcher replay{trace_for_capture, compare};

[[maybe_unused]] const bool is_watching = (memprof::detail::watcher = &replay, true);

}  // namespace
