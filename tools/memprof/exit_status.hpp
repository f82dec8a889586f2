#pragma once

namespace memprof_tool {

/// The exit status of the program.
enum exit_status : int {
  success = 0,
  failed = 1,     ///< the output cannot be written, or another program failed
  bad_input = 2,  ///< an invalid argument or an unreadable file
};

}  // namespace memprof_tool
