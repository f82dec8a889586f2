#pragma once

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

/// Sends stdout and stderr nowhere until the end of the scope: the trainer reports to both.
class silent_output {
 public:
  silent_output() {
    std::fflush(nullptr);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
  silent_output(const silent_output&) = delete;
  silent_output& operator=(const silent_output&) = delete;
  ~silent_output() {
    std::fflush(nullptr);
    ::dup2(output_, STDOUT_FILENO);
    ::dup2(errors_, STDERR_FILENO);
    ::close(output_);
    ::close(errors_);
  }

 private:
  int output_ = ::dup(STDOUT_FILENO);
  int errors_ = ::dup(STDERR_FILENO);
};
