#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// Checks that the nth operation of a memory file is the nth of an operations file, by index and `loc`. Returns the fault as a
/// sentence without a full stop, or an empty text. Reads files as written by `write_tt_json` and the original, line by line.
/// `count` is set to the number of operations.
[[nodiscard]] std::string validate_tt_json(std::FILE* memory, std::FILE* operations, std::uint64_t& count);

}  // namespace memprof::inline MEMPROF_ABI
