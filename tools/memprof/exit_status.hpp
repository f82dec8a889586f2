#pragma once

namespace memprof_tool {

/// What the program ends with.
enum exit_status : int {
  success = 0,
  failed = 1,     ///< something outside went wrong that the arguments are not to blame for
  bad_input = 2,  ///< an argument or a file
};

}  // namespace memprof_tool
