#pragma once

#include <memprof/config.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

class torch_record_sink;
class torch_stacks;

/// Reads a snapshot from JSON as `read_torch_pickle` does from a pickle. `file` must be at its start.
[[nodiscard]] std::string read_torch_json(std::FILE* file, const std::filesystem::path& path, torch_stacks& stacks,
                                          torch_record_sink& sink);

}  // namespace memprof::inline MEMPROF_ABI::detail
