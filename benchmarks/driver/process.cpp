#include "process.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace bench {
namespace {

/// Both ends of a pipe, closed at the end of the scope.
class pipe_ends {
 public:
  pipe_ends() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    ::close(reading());
    close_writing();
  }
  [[nodiscard]] int reading() const { return ends_[0]; }
  [[nodiscard]] int writing() const { return ends_[1]; }
  void close_writing() {
    if (ends_[1] != -1) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

pid_t start(const command& line, const std::vector<std::string>& variables, const pipe_ends& output) {
  std::vector<std::string> arguments = line;
  std::vector<std::string> environment = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output.writing(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, line.front().c_str(), &actions, nullptr, pointers_to(arguments).data(),
                                   pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error{error, std::generic_category(), "cannot start " + line.front()};
  return child;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

}  // namespace

finished_process run(const command& line, const std::vector<std::string>& variables) {
  finished_process finished;
  pipe_ends output;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = start(line, variables, output);
  output.close_writing();
  finished.output = read_all(output.reading());
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  finished.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  finished.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

finished_process run_or_throw(const command& line, const std::vector<std::string>& variables) {
  finished_process finished = run(line, variables);
  if (finished.status == 0) return finished;
  std::string text;
  for (const std::string& word : line) text += (text.empty() ? "" : " ") + word;
  throw std::runtime_error{text + " ended with status " + std::to_string(finished.status)};
}

std::optional<std::string> find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate = std::filesystem::path{folder} / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return std::nullopt;
}

}  // namespace bench
