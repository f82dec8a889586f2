#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The name of the file that a command line runs, without its folder; of Python's, that of its script or module.
[[nodiscard]] std::string program_in(std::string_view command_line);

}  // namespace memprof::inline MEMPROF_ABI::detail
