#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

namespace memprof::inline MEMPROF_ABI {

/// Writes collapsed stacks, as read by flamegraph.pl, inferno, speedscope and Perfetto: `space;operation;operation bytes`, a line
/// for each path with bytes of its own. The lines of a space add up to its number in the profile. In names, `;` becomes `:` and a
/// control character a space.
void write_collapsed(const stack_table& table, stack_value value, byte_sink_view out);

}  // namespace memprof::inline MEMPROF_ABI
