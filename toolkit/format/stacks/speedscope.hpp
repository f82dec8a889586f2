#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Writes speedscope JSON (https://www.speedscope.app/file-format-schema.json): for each memory space one profile of what was
/// live at its peak, one of what was live at the end, and one of everything allocated, in bytes. `name` is the name of the run.
void write_speedscope(const stack_table& table, std::string_view name, byte_sink_view out);

}  // namespace memprof::inline MEMPROF_ABI
