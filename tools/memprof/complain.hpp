#pragma once

#include "exit_status.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/report/text/text_format.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// Prints one line to stderr, after flushing stdout to keep the two in order.
inline void print_error(const char* subcommand, const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "memprof %s: %s\n", subcommand, memprof::detail::on_one_line(what).c_str());
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
