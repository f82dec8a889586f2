#pragma once

#include <memprof/config.hpp>

#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

class byte_reader;
class torch_record_sink;
class torch_stacks;

/// Reads a snapshot from a pickle. Returns why reading ended early, as a sentence without a full stop; empty if it did not.
/// Raises an error if the pickle is not a snapshot.
[[nodiscard]] std::string read_torch_pickle(byte_reader& in, torch_stacks& stacks, torch_record_sink& sink);

}  // namespace memprof::inline MEMPROF_ABI::detail
