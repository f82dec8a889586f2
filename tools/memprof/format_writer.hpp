#pragma once

#include "conversion.hpp"
#include "conversion_input.hpp"

namespace memprof_tool {

/// Writes the recording in the format that is asked for. Prints what the format cannot hold as lines of the subcommand. Throws
/// `output_error`; `memprof::error` if the recording does not have what the format needs.
void write_format(const conversion& asked, conversion_input& input);

}  // namespace memprof_tool
