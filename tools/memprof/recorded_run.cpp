#include "recorded_run.hpp"

#include "complain.hpp"
#include "memory_past_malloc.hpp"
#include "unrecorded_processes.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

volatile ::pid_t running = 0;  // read by the signal handler

void pass_on(int signal, ::siginfo_t* info, void*) {
  // A terminal's Ctrl+C reaches the program by itself.
  if (running > 0 && info->si_code <= 0) ::kill(running, signal);
}

/// While it lives, signals that would end this process go to the program.
class passed_signals {
 public:
  passed_signals() {
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t index = 0; index < signals.size(); ++index) ::sigaction(signals[index], &action, &before_[index]);
  }
  passed_signals(const passed_signals&) = delete;
  passed_signals& operator=(const passed_signals&) = delete;
  ~passed_signals() {
    for (std::size_t index = 0; index < signals.size(); ++index) ::sigaction(signals[index], &before_[index], nullptr);
  }

  /// What the signals did before, for the program.
  void restore() const {
    for (std::size_t index = 0; index < signals.size(); ++index) ::sigaction(signals[index], &before_[index], nullptr);
  }

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::array<struct sigaction, signals.size()> before_{};
};

void set_environment(const std::filesystem::path& library, const std::filesystem::path& folder, const run_options& options) {
  if (!library.empty()) {
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string preload = library.string() + (others == nullptr || *others == '\0' ? "" : ":" + std::string{others});
    ::setenv("LD_PRELOAD", preload.c_str(), 1);
  }
  ::setenv("RUN_BY_MEMPROF_FOLDER", folder.c_str(), 1);
  ::setenv("RUN_BY_MEMPROF_PROCESS", std::to_string(::getpid()).c_str(), 1);
  if (options.records_children) ::setenv("RUN_BY_MEMPROF_CHILDREN", "1", 1);
  if (options.records_mappings) ::setenv("RUN_BY_MEMPROF_MMAP", "1", 1);
  if (!options.stacks.empty()) ::setenv("RUN_BY_MEMPROF_STACKS", options.stacks.c_str(), 1);
  if (options.infers_operations) ::setenv("RUN_BY_MEMPROF_INFER", "1", 1);
  if (options.records_uses) ::setenv("RUN_BY_MEMPROF_USES", "1", 1);
  if (options.records_cuda) ::setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
  if (options.records_nvtx) ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 1);
}

/// Copies a trace, except for what a file needs while it is written.
struct trace_copy {
  memprof::trace target;
  std::map<std::string, memprof::fact_table> tables;
  memprof::extend::label last_name = 0;
  std::string command_line;

  void info(const memprof::extend::capture_info& info) {
    command_line = info.process.command_line;
    target.info(info);
  }
  void name(memprof::extend::label id, std::string_view text) {
    last_name = std::max(last_name, id);
    target.name(id, text);
  }
  void space(const memprof::extend::space_definition& space) { target.space(space); }
  void facts(memprof::extend::fact_part&& part) {
    memprof::fact_table& whole = tables[part.table.name];
    if (part.first_row == 0) whole = {part.table.name, part.table.columns, {}};
    std::move(part.table.rows.begin(), part.table.rows.end(), std::back_inserter(whole.rows));
  }
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring) {
    target.events(first, last, ring);
  }

  void missing(const memprof::missing_source& source) {
    memprof::fact_table& table = tables[std::string{memprof::missing_source::table}];
    const memprof::fact_table more = memprof::extend::to_table(std::vector<memprof::missing_source>{source});
    if (table.rows.empty()) table = {more.name, more.columns, {}};
    table.rows.push_back(more.rows[0]);
  }

  /// Ends the capture, as its process would have done had it not left by `_exit` or `exec`.
  void end() {
    using memprof::extend::event_kind;
    target.name(last_name + 1, memprof::detail::end_segment_name);
    const std::array<memprof::extend::event, 2> events{
        {{0, 0, 0, last_name + 1, event_kind::segment_end, memprof::extend::any_space, 0},
         {0, 0, 0, 0, event_kind::capture_end, memprof::extend::any_space, 0}}};
    target.events(events.data(), events.data() + events.size(), memprof::detail::no_ring_id);
  }
};

/// The name that the system has for a process, while it has not been waited for; empty: unknown.
[[nodiscard]] std::string name_of_process(::pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/comm"};
  std::string name;
  std::getline(file, name);
  return name;
}

/// Whether the system may call a process so that runs this command: after its program, or after its script.
[[nodiscard]] bool may_be_called(std::string_view command_line, std::string_view name) {
  constexpr std::size_t most_bytes = 15;
  for (int word = 0; word < 2; ++word) {
    const std::string_view whole = command_line.substr(0, command_line.find(' '));
    if (whole.substr(whole.rfind('/') + 1).substr(0, most_bytes) == name) return true;
    command_line.remove_prefix(std::min(command_line.size(), whole.size() + 1));
  }
  return false;
}

/// How the process of a trace ended.
struct process_end {
  bool died = false;  ///< by a signal
  std::string name;   ///< as in `program_end`; empty: unknown, or another program came after this trace's
  std::size_t unrecorded = 0;
  bool is_malloc_all = false;  ///< its own memory is recorded as far as `malloc` has it, and no further
};

/// What the trace of a process does not have, though it should.
[[nodiscard]] std::vector<memprof::missing_source> missing_of(trace_copy& copy, const process_end& end, bool has_ended) {
  std::vector<memprof::missing_source> missing;
  if (end.is_malloc_all) {
    if (auto past_malloc = memory_past_malloc(copy.tables[std::string{memprof::process_memory::table}]))
      missing.push_back(std::move(*past_malloc));
  }
  if (!has_ended && !end.name.empty() && !may_be_called(copy.command_line, end.name))
    missing.push_back({end.name, "the process became this program, or only took the name"});
  if (end.unrecorded != 0) {
    missing.push_back({std::to_string(end.unrecorded) + (end.unrecorded == 1 ? " process" : " processes"),
                       "no trace could be written, as after setuid or chroot"});
  }
  return missing;
}

/// Puts the copy in the trace's place. If that fails, the trace is as before, and says why.
void replace_trace(process_trace& trace, const trace_copy& copy) {
  // The process goes on in the file that it has open.
  const std::filesystem::path live_file = trace.path.string() + ".running";
  if (trace.still_running) std::filesystem::rename(trace.path, live_file);
  try {
    memprof::write_trace(copy.target, trace.path);
  } catch (const memprof::error& fault) {
    trace.obstacle = fault.what();
    if (trace.still_running) std::filesystem::rename(live_file, trace.path);
  }
}

/// Writes a trace anew if its process did not end it, or if something is to be added. False if there is nothing in it.
[[nodiscard]] bool finish_trace(process_trace& trace, const process_end& end) {
  trace_copy copy;
  memprof::trace_file_status status;
  try {
    status = memprof::read_trace(trace.path, copy);
  } catch (const memprof::error&) {
    return false;  // the process died before it wrote the first byte
  }
  std::vector<memprof::missing_source> missing = missing_of(copy, end, status.has_ended);
  if (status.has_ended && missing.empty()) return true;
  for (const memprof::missing_source& each : missing) copy.missing(each);
  for (const auto& [name, table] : copy.tables) copy.target.facts(table);
  trace.still_running = status.is_being_written;
  if (!status.has_ended && !end.died && !trace.still_running) copy.end();
  replace_trace(trace, copy);
  if (!trace.obstacle.empty()) trace.missing = std::move(missing);
  return true;
}

}  // namespace

program_end run_recorded(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& library, const std::filesystem::path& folder, const run_options& options) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  unrecorded_processes unrecorded{folder};
  const passed_signals passed;
  const ::pid_t child = ::fork();
  if (child < 0) memprof::detail::raise_about_file("run", program, memprof::detail::reason_in_errno());
  if (child == 0) {
    passed.restore();
    set_environment(library, folder, options);
    ::execv(program.c_str(), words.data());
    const int fault = errno;
    print_error("run", "cannot run '" + program.string() + "': " + memprof::detail::reason_in_errno());
    ::_exit(fault == ENOENT ? 127 : 126);
  }
  running = child;
  unrecorded.listen();
  program_end end{child, 0};
  ::siginfo_t ended{};
  while (::waitid(P_PID, static_cast<::id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  end.name = name_of_process(child);
  while (::waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  end.unrecorded = unrecorded.count();
  return end;
}

int end_like(const program_end& end) {
  if (!WIFSIGNALED(end.status)) return WEXITSTATUS(end.status);
  const rlimit no_core{0, 0};  // the program has left one, if any
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int signal = WTERMSIG(end.status);
  std::fflush(nullptr);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  constexpr int signalled = 128;
  return signalled + signal;
}

std::array<std::filesystem::path, 2> preload_library_places() {
  std::error_code failure;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  constexpr const char* name = "libmemprof_preload.so";
  return {own / name, (own / MEMPROF_TOOL_PRELOAD_FOLDER / name).lexically_normal()};
}

std::filesystem::path preload_library() {
  std::error_code failure;
  for (std::filesystem::path& place : preload_library_places()) {
    if (std::filesystem::exists(place, failure)) return std::move(place);
  }
  return {};
}

std::vector<process_trace> traces_in(const std::filesystem::path& folder, const program_end& end, bool is_malloc_all) {
  std::vector<process_trace> found;
  std::error_code failure;
  std::filesystem::directory_iterator files{folder, failure};
  if (failure) {
    memprof::detail::raise("'" + folder.string() + "' " +
                           (failure == std::errc::no_such_file_or_directory
                                ? "was removed while the program ran, and what was recorded with it"
                                : "cannot be read: " + failure.message()));
  }
  for (const std::filesystem::directory_entry& entry : files) {
    process_trace trace;
    trace.path = entry.path();
    if (std::sscanf(entry.path().filename().c_str(), "%d.%d.memtrace", &trace.process, &trace.number) != 2) continue;
    found.push_back(std::move(trace));
  }
  std::sort(found.begin(), found.end(), [](const process_trace& left, const process_trace& right) {
    return std::tie(left.process, left.number) < std::tie(right.process, right.number);
  });
  std::vector<process_trace> finished;
  for (std::size_t index = 0; index < found.size(); ++index) {
    const bool is_last = index + 1 == found.size() || found[index + 1].process != found[index].process;
    found[index].is_replaced = !is_last;
    process_end how;
    if (is_last && found[index].process == end.process) how = {WIFSIGNALED(end.status), end.name, end.unrecorded};
    how.is_malloc_all = is_malloc_all;
    if (finish_trace(found[index], how)) finished.push_back(found[index]);
  }
  const auto kept =
      std::find_if(finished.begin(), finished.end(), [](const process_trace& trace) { return !trace.obstacle.empty(); });
  if (kept != finished.end()) print_error("run", kept->obstacle + "; the trace stays as its process left it");
  return finished;
}

}  // namespace memprof_tool
