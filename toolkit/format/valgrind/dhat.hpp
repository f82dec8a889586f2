#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// Writes one memory space as JSON for DHAT's viewer (valgrind's dh_view.html, file version 2). The bytes live at `t-gmax` and
/// `t-end` and the total allocated are the profile's numbers; a program point is a path of operations, innermost first. The table
/// must have lifetimes, so it must be of a trace, without categories.
void write_dhat(const stack_table& table, std::uint32_t space, byte_sink_view out);

}  // namespace memprof::inline MEMPROF_ABI
