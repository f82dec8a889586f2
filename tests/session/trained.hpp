#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>

#include <scratch_folder.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace memprof_tests {

/// How to run the trainer.
struct run_settings {
  std::vector<std::string> environment = {"MEMPROF=1"};  ///< beside the usual one, and the directory
  std::string directory = {};                            ///< where files go; empty: the folder of the run
  rlim_t largest_file = RLIM_INFINITY;
};

/// A run of the trainer that is over, and what it left.
class trained {
 public:
  explicit trained(const std::string& ending, const run_settings& settings = {}) {
    const std::string output = folder_.file("output");
    const std::string errors = folder_.file("errors");
    std::filesystem::create_directory(folder_ / "work");
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string directory = settings.directory.empty() ? folder_.file("profiles") : settings.directory;
      ::setenv("MEMPROF_OUTPUT_DIR", directory.c_str(), 1);
      for (const std::string& each : settings.environment) {
        const std::size_t equals = each.find('=');
        ::setenv(each.substr(0, equals).c_str(), each.substr(equals + 1).c_str(), 1);
      }
      ::dup2(::open(output.c_str(), O_WRONLY | O_CREAT, 0666), STDOUT_FILENO);
      ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT, 0666), STDERR_FILENO);
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      const rlimit largest{settings.largest_file, settings.largest_file};
      if (settings.largest_file != RLIM_INFINITY) ::setrlimit(RLIMIT_FSIZE, &largest);
      ::alarm(60);  // one that hangs is ended by SIGALRM
      if (::chdir(folder_.file("work").c_str()) != 0) std::_Exit(98);
      ::execl(MEMPROF_TRAINER, MEMPROF_TRAINER, ending.c_str(), static_cast<char*>(nullptr));
      std::_Exit(97);
    }
    ::waitpid(child, &status_, 0);
    output_ = text_of(output);
    errors_ = text_of(errors);
  }

  /// The exit status; -1 if a signal ended it.
  [[nodiscard]] int exit_status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }
  /// The signal that ended it; 0: none.
  [[nodiscard]] int signal() const { return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0; }
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] const std::string& errors() const { return errors_; }
  [[nodiscard]] std::filesystem::path directory() const { return folder_ / "profiles"; }

  /// All that it left, in the order of names.
  [[nodiscard]] std::vector<std::filesystem::path> files(const std::string& ending = {}) const {
    std::vector<std::filesystem::path> found;
    for (const std::filesystem::path& top : {directory(), folder_ / "work"}) {
      if (!std::filesystem::exists(top)) continue;
      for (const auto& entry : std::filesystem::directory_iterator{top}) {
        if (ending.empty() || entry.path().extension() == ending) found.push_back(entry.path());
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// The only profile that there is.
  [[nodiscard]] memprof::profile profile() const {
    const auto found = files(".json");
    if (found.size() != 1) throw std::runtime_error{"there are " + std::to_string(found.size()) + " profiles; " + errors_};
    return memprof::read_json(found.front());
  }

 private:
  static std::string text_of(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  scratch_folder folder_;
  int status_ = 0;
  std::string output_;
  std::string errors_;
};

}  // namespace memprof_tests
