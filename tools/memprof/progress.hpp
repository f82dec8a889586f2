#pragma once

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace memprof_tool {

/// Says on stderr what takes longer than a second and how far it has come: one line, written anew and erased at the end. Where
/// stderr is no terminal it says nothing.
class progress {
 public:
  /// `what` without how far; with `read`, a file that is being read from its beginning, shows that too. The file must outlive
  /// this.
  explicit progress(std::string what, std::FILE* read = nullptr);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();

 private:
  void show_until_done();
  [[nodiscard]] std::string line() const;

  std::string what_;
  int descriptor_ = -1;  ///< of the file that is read
  double size_ = 0;      ///< its bytes; 0: not known
  int seconds_ = 0;
  bool is_done_ = false;
  std::mutex lock_;
  std::condition_variable done_;
  std::thread shower_;
};

}  // namespace memprof_tool
