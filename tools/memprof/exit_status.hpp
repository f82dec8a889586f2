#pragma once

namespace memprof_tool {

/// What the program ends with.
enum exit_status : int {
  success = 0,
  failed = 1,     ///< something outside went wrong that the arguments are not to blame for
  bad_input = 2,  ///< an argument or a file
};

/// The same for people.
inline constexpr const char* exit_status_text =
    "Exit status: 0 if all went well; 1 if the output cannot be written, or another program failed; 2 if an argument is wrong, "
    "or "
    "an input cannot be read to its end. For report, plot, analyze and trace --pack, an output file that cannot be written is a "
    "wrong argument: 2.";

}  // namespace memprof_tool
