#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/label.hpp>

#include <functional>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The calls of a stack (`replayed_block::call_stack`), innermost first: a list for each return address, as functions may be
/// inlined there. `names` are those of the trace.
using calls_of_stack =
    std::function<std::vector<std::vector<source_frame>>(const detail::label_table& names, extend::label stack)>;

/// Writes a memory space of a trace as heaptrack's interpreter does, in version 1 of the format, which every heaptrack_print
/// since 1.0 reads: each allocation and each free in its order, with its operations and, within them, the calls of its stack, and
/// the milliseconds. Peak, number of allocations and bytes at the end are those of the trace.
///
/// A thread's operations are functions without a file. Threads, names of blocks and their addresses are left out, and which of
/// several blocks of the same size and stack is freed. In names, a control character becomes a space.
///
/// Reads the trace twice. Takes memory for what is live, and for distinct stacks.
void write_heaptrack(trace_source_view source, std::string_view space, const calls_of_stack& calls, byte_sink_view out);

}  // namespace memprof::inline MEMPROF_ABI
