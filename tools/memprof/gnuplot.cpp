#include "gnuplot.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>

extern char** environ;

namespace memprof_tool {
namespace {

using memprof::detail::file_handle;

[[noreturn]] void raise_about_start(int reason) {
  memprof::detail::raise("cannot run gnuplot: " + std::error_code(reason, std::generic_category()).message());
}

/// A file without a name, which leaves nothing behind however the program ends.
file_handle nameless_file() {
  file_handle file{std::tmpfile()};
  if (!file) raise_about_start(errno);
  return file;
}

file_handle nameless_file(const std::string& content) {
  file_handle file = nameless_file();
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size() || std::fflush(file.get()) != 0) {
    raise_about_start(errno);
  }
  std::rewind(file.get());
  return file;
}

std::string first_line(std::FILE* file) {
  std::rewind(file);
  std::string line;
  // gnuplot's messages begin with empty lines and a copy of the line of the script.
  for (int character = std::fgetc(file); character != EOF; character = std::fgetc(file)) {
    if (character != '\n') {
      line += static_cast<char>(character);
    } else if (line.find_first_not_of(" \t^") != std::string::npos) {
      break;
    } else {
      line.clear();
    }
  }
  return line;
}

}  // namespace

gnuplot_result run_gnuplot(const std::string& script) {
  const file_handle input = nameless_file(script);
  const file_handle complaints = nameless_file();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(complaints.get()), STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
  std::string name = "gnuplot";
  std::string option = "-d";  // ignores the user's settings
  const std::array<char*, 3> arguments{name.data(), option.data(), nullptr};
  pid_t process = 0;
  const int failure = posix_spawnp(&process, name.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  gnuplot_result result;
  result.found = failure != ENOENT;
  if (!result.found) return result;
  if (failure != 0) raise_about_start(failure);

  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) raise_about_start(errno);
  }
  result.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (result.succeeded) return result;
  result.complaint = first_line(complaints.get());
  if (result.complaint.empty()) result.complaint = "it printed no message";
  return result;
}

}  // namespace memprof_tool
