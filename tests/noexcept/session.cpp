// A session without exceptions: its profile is there after the signal that ends a child, and after the child's end. Run by ctest
// as a program that must exit with 0.
#include <memprof/memprof.hpp>
#include <memprof/record/session.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

void train(const std::string& directory, bool ends_by_signal) {
  const memprof::session session{{.output_dir = directory, .enabled = true}};
  memprof::memory_resource memory{"cpu"};
  void* const block = memory.allocate(1000);
  memprof::memory_checkpoint("allocated");
  memory.deallocate(block, 1000);
  if (!ends_by_signal) return;
  std::raise(SIGTERM);
  for (;;) ::pause();
}

int files_in(const std::string& directory) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) found += entry.path().extension() == ".json" ? 1 : 0;
  return found;
}

}  // namespace

int main() {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("memprof_noexcept_" + std::to_string(::getpid()))).string();
  int faults = 0;
  for (const bool ends_by_signal : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      train(directory, ends_by_signal);
      std::exit(3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool ended_well = ends_by_signal ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM : WEXITSTATUS(status) == 3;
    if (!ended_well || files_in(directory) != (ends_by_signal ? 2 : 1)) ++faults;
  }
  std::filesystem::remove_all(directory);
  if (faults != 0) std::puts("a session did not leave its profile, or the program ended in another way");
  return faults == 0 ? 0 : 1;
}
