#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

namespace memprof::inline MEMPROF_ABI {

/// Writes a heap profile for pprof, gzipped as on disk. Each operation is a function, the memory space the outermost function and
/// a label, the category another label if the table has it: `pprof -sample_index=inuse_space -tagroot=category`. The sums of
/// `peak_space`, `inuse_space` and `alloc_space` over a space are the profile's numbers.
void write_pprof(const stack_table& table, byte_sink_view out);

}  // namespace memprof::inline MEMPROF_ABI
