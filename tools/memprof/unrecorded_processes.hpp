#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <thread>

namespace memprof_tool {

/// Counts the processes that say, by `run_socket_address`, that they could not write a trace.
class unrecorded_processes {
 public:
  /// From here on they can say so. Where the system has no such socket, none is heard.
  explicit unrecorded_processes(const std::filesystem::path& folder);
  unrecorded_processes(const unrecorded_processes&) = delete;
  unrecorded_processes& operator=(const unrecorded_processes&) = delete;
  ~unrecorded_processes();

  /// Begins to listen, on a thread: after the program has been started, as `fork` does not copy threads.
  void listen();
  /// Ends that, and returns how many there were.
  [[nodiscard]] std::size_t count();

 private:
  void hear();

  int socket_ = -1;
  std::set<::pid_t> heard_;  // by the thread until it has ended
  std::thread thread_;
};

}  // namespace memprof_tool
