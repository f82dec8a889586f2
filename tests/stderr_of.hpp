#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace memprof_tests {

/// The first `most` bytes of what `work` writes to stderr.
template <class Work>
std::string stderr_of(Work work, std::size_t most = 100'000) {
  std::fflush(stderr);
  std::FILE* const file = std::tmpfile();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  work();
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::rewind(file);
  std::string text(most, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace memprof_tests
