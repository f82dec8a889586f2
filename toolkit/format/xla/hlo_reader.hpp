#pragma once

#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <string_view>

/// @file
/// Reads `xla.HloProto` (openxla/xla, xla/service/hlo.proto). Needs protozero.

namespace memprof::inline MEMPROF_ABI {

namespace detail {
class protobuf_file;
}

/// Reads a serialized `xla.HloProto` from the bytes of `file`. Takes memory for its instructions and buffers; literals and
/// configurations are skipped. Throws `memprof::error` with the byte offset if the message is invalid.
[[nodiscard]] hlo_program read_hlo_program(const detail::protobuf_file& file, std::string_view bytes);

}  // namespace memprof::inline MEMPROF_ABI
