#pragma once

#include "exit_status.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/report/text/text_format.hpp>

#include <cstdio>
#include <new>
#include <string>

namespace memprof_tool {

/// Prints one line to stderr, after flushing stdout to keep the two in order. `subcommand` is empty if there is none.
inline void print_error(const std::string& subcommand, const std::string& what) {
  std::fflush(stdout);
  print("memprof" + (subcommand.empty() ? "" : " " + subcommand) + ": " + memprof::detail::on_one_line(what) + "\n", stderr);
}

/// Prints text that is all there is to print. Returns the exit status.
inline int print_whole(const char* subcommand, const std::string& text) {
  print(text);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return success;
  print_error(subcommand, "cannot write to the standard output");
  return failed;
}

/// Runs a subcommand and returns its exit status; a failure is reported.
template <class Action>
[[nodiscard]] int run_reported(const char* subcommand, Action&& action) {
  try {
    return action();
  } catch (const memprof::error& fault) {
    print_error(subcommand, fault.what());
  } catch (const std::bad_alloc&) {
    print_error(subcommand, "out of memory while reading");
  }
  return bad_input;
}

/// Runs one of several steps. A failure is reported and goes to `status`, so that the remaining steps still run.
template <class Action>
void attempt(int& status, const char* subcommand, Action action) {
  try {
    const int result = action();
    if (status == success) status = result;
  } catch (const memprof::error& fault) {
    print_error(subcommand, fault.what());
    status = bad_input;
  }
}

}  // namespace memprof_tool
