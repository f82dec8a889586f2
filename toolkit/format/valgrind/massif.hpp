#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>

#include <cstddef>

namespace memprof::inline MEMPROF_ABI {

/// Writes one memory space as a massif.out file for ms_print and massif-visualizer: its timeline in at most `max_snapshots`
/// stretches, each with its greatest live bytes, and the operations that held the peak, outermost first.
void write_massif(const profile& source, const space_profile& space, byte_sink_view out, std::size_t max_snapshots = 200);

}  // namespace memprof::inline MEMPROF_ABI
