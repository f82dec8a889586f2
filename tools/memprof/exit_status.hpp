#pragma once

namespace memprof_tool {

/// The exit status of the program.
enum exit_status : int {
  success = 0,
  failed = 1,     ///< the output cannot be written, or another program failed
  bad_input = 2,  ///< an invalid argument or an unreadable file
};

/// The footer of every help text.
inline constexpr const char* exit_status_text =
    "Exit status: 0 on success; 1 if the output cannot be written or another program failed; 2 if an argument is invalid or an "
    "input cannot be read completely. report, plot, analyze and trace --pack also exit with 2 if an output file cannot be "
    "written.";

}  // namespace memprof_tool
