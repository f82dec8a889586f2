#pragma once

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace memprof_tool {

/// Shows on stderr what is taking longer than a second, and its progress: one line, rewritten in place and erased at the end.
/// Prints nothing if stderr is not a terminal.
class progress {
 public:
  /// `what` is the text without the progress. `read` is a file that is being read from its beginning, whose position is then
  /// shown, too; it must outlive this object.
  explicit progress(const std::string& what, std::FILE* read = nullptr);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();

 private:
  void show_until_done();
  [[nodiscard]] std::string line() const;

  std::string what_;
  int descriptor_ = -1;  ///< of the file being read
  double size_ = 0;      ///< of that file, in bytes; 0: unknown
  int seconds_ = 0;
  bool is_done_ = false;
  std::mutex lock_;
  std::condition_variable done_;
  std::thread display_thread_;
};

}  // namespace memprof_tool
