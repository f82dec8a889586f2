// Linked into every test program: whenever one of its captures is asked for a profile, the capture's trace has to give the same
// one in memory. For the first captures of a process, and some later ones, so must a file that is written afterwards and one that
// is written while the capture runs.
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/trace/trace_file.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace {

memprof::trace kept;

memprof::trace* trace_for_capture() noexcept {
  kept = memprof::trace{};
  return &kept;
}

int captures = 0;

/// The files of thousands of captures show no more than those of the first.
bool has_files() { return captures <= 20 || captures % 64 == 0; }

/// The file that a capture writes while it runs: taken away when the next one begins, and when the process that made it ends.
class live_file {
 public:
  live_file() = default;
  live_file(const live_file&) = delete;
  live_file& operator=(const live_file&) = delete;
  ~live_file() { remove(); }

  const char* next() {
    remove();
    process_ = getpid();
    const std::string name = "memprof_live_" + std::to_string(process_) + ".memtrace";
    path_ = has_files() ? (std::filesystem::temp_directory_path() / name).string() : std::string{};
    return path_.c_str();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void remove() const {
    if (path_.empty() || process_ != getpid()) return;
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::string path_;
  pid_t process_ = 0;
};
live_file written_meanwhile;

const char* file_for_capture() noexcept {
  ++captures;
  return written_meanwhile.next();
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
  require_equal(replayed.checkpoints, live.checkpoints, "checkpoints", from);
  require_equal(replayed.facts, live.facts, "facts", from);
  require_equal(replayed.exact, live.exact, "exactness", from);
  memprof::profile comparable = replayed;
  comparable.cost = live.cost;
  require_equal(comparable, live, "other fields", from);
}

/// Of a capture that goes on, rings may hold what its profile does not know yet; a slow disk leaves a gap.
void compare_live_file(const memprof::profile& live) {
  const std::string& path = written_meanwhile.path();
  if (path.empty() || !std::filesystem::exists(path)) return;  // the test writes one itself, or took it away
  if (!memprof::rows_of<memprof::incomplete_trace_file>(live.facts).empty()) return;
  memprof::trace_file_status status;
  const memprof::profile from_file = memprof::profile_of(path, status);
  require_equal(status.damage.empty(), true, "chunks", "in the capture's file");
  if (status.from_rings != 0 || status.is_being_written == live.complete) return;
  require_equal(from_file, live, "in the capture's file");
}

void compare(const memprof::trace& trace, const memprof::profile& live) noexcept {
  if (trace.left_out() != 0) return;
  require_equal(memprof::profile_of(trace), live, "in memory");
  if (!has_files()) return;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("memprof_replay_" + std::to_string(getpid()) + ".memtrace");
  memprof::write_trace(trace, path);
  memprof::trace_file_status status;
  const memprof::profile from_file = memprof::profile_of(path, status);
  std::filesystem::remove(path);
  require_equal(status.damage.empty(), true, "chunks", "in a file");
  require_equal(from_file, live, "in a file");
  compare_live_file(live);
}

constexpr memprof::detail::capture_watcher replay{trace_for_capture, file_for_capture, compare};

[[maybe_unused]] const bool is_watching = (memprof::detail::watcher = &replay, true);

}  // namespace
