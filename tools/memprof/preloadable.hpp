#pragma once

#include <filesystem>
#include <string>

namespace memprof_tool {

/// The file that a shell would run for that name; empty if there is none.
[[nodiscard]] std::filesystem::path find_program(const std::string& name);

/// Why no library can be preloaded into a program or a script, as a part of a sentence; empty if one can.
[[nodiscard]] std::string obstacle_to_preload(const std::filesystem::path& program);

}  // namespace memprof_tool
