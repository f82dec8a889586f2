#pragma once

#include "exit_status.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/report/text/text_format.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// Says on stderr, in one line, what is wrong; what was printed before stands before it.
inline void complain(const char* subcommand, const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "memprof %s: %s\n", subcommand, memprof::detail::on_one_line(what).c_str());
}

/// Takes one of several steps; where it fails, that is said, and the next ones follow all the same.
template <class Action>
void attempt(int& status, const char* subcommand, Action action) {
  try {
    const int result = action();
    if (status == success) status = result;
  } catch (const memprof::error& fault) {
    complain(subcommand, fault.what());
    status = bad_input;
  }
}

}  // namespace memprof_tool
