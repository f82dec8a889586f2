#include "script_run.hpp"
#include "complain.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <poll.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

extern "C" char** environ;  // NOLINT(readability-redundant-declaration): <unistd.h> has it only with _GNU_SOURCE

namespace memprof_tool {
namespace {

/// Leaves Ctrl+C to the running program; what it logged until then is still read.
class interrupt_guard {
 public:
  interrupt_guard() : before_(std::signal(SIGINT, SIG_IGN)) {}
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
  ~interrupt_guard() { std::signal(SIGINT, before_); }

  /// What SIGINT did before.
  [[nodiscard]] bool was_ignored() const noexcept { return before_ == SIG_IGN; }

 private:
  void (*before_)(int);
};

/// Starts a program whose stdout and stderr go to the pipe.
::pid_t start(const std::vector<std::string>& command, const std::array<int, 2>& pipe, bool ignores_interrupts) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, pipe[0]);
  ::posix_spawn_file_actions_addclose(&actions, pipe[1]);
  ::posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  ::sigset_t defaults{};
  ::sigemptyset(&defaults);
  if (!ignores_interrupts) ::sigaddset(&defaults, SIGINT);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  ::pid_t child = 0;
  errno = ::posix_spawnp(&child, arguments.front(), &actions, &attributes, arguments.data(), environ);
  const int fault = errno;
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  errno = fault;
  if (fault != 0) memprof::detail::raise_about_file("run", command.front(), memprof::detail::reason_in_errno());
  return child;
}

/// Copies from the pipe until it ends, or until the program has ended and the pipe is silent: a process left behind may keep it
/// open.
int copy_until_end(int pipe, ::pid_t child, std::FILE* log, bool& is_written) {
  int state = 0;
  bool has_ended = false;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    if (!has_ended) has_ended = ::waitpid(child, &state, WNOHANG) == child;
    constexpr int patience_ms = 100;
    ::pollfd watched{pipe, POLLIN, 0};
    const int ready = ::poll(&watched, 1, patience_ms);
    if (ready == 0 && has_ended) break;
    if (ready <= 0) continue;
    const ::ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::string_view part{buffer.data(), static_cast<std::size_t>(got)};
    is_written = memprof::detail::write_text(log, part) && is_written;
    (void)memprof::detail::write_text(stdout, part);  // as the script wrote it, even to a terminal
    std::fflush(stdout);
  }
  while (!has_ended && (::waitpid(child, &state, 0) == child || errno != EINTR)) has_ended = true;
  return state;
}

}  // namespace

int run_and_log(const std::vector<std::string>& command, const std::filesystem::path& log) {
  using namespace memprof::detail;
  memprof::detail::file_handle file{std::fopen(log.c_str(), "wb")};
  if (!file) raise_about_file("write", log, reason_in_errno());
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) raise_about_file("run", command.front(), reason_in_errno());
  const interrupt_guard guard;
  ::pid_t child = 0;
  try {
    child = start(command, pipe, guard.was_ignored());
  } catch (...) {
    ::close(pipe[0]);
    ::close(pipe[1]);
    throw;
  }
  ::close(pipe[1]);
  bool is_written = true;
  const int state = copy_until_end(pipe[0], child, file.get(), is_written);
  ::close(pipe[0]);
  is_written = std::fclose(file.release()) == 0 && is_written;
  if (!is_written) print_error("tt-mlir", "cannot write all of '" + log.string() + "'");
  constexpr int signalled = 128;
  return WIFSIGNALED(state) ? signalled + WTERMSIG(state) : WEXITSTATUS(state);
}

}  // namespace memprof_tool
