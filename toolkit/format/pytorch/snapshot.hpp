#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

struct torch_snapshot_options {
  /// Beyond this, memory_viz becomes slow. A space with more changes is written as a window around its peak, with the state at
  /// the end of the window.
  std::size_t events = 200'000;
};

/// What a snapshot lacks of a space.
struct torch_snapshot_loss {
  std::string space;
  std::uint64_t left_out_events = 0;  ///< before and after the window
  std::uint64_t left_out_blocks = 0;  ///< they overlap another block, or have no address below 2^53
  std::uint64_t left_out_bytes = 0;
  bool segments_are_made_up = false;  ///< the trace does not report what an allocator reserved
};

/// Writes a trace as a PyTorch memory snapshot, a pickle like that of `torch.cuda.memory._dump_snapshot`, for
/// pytorch.org/memory_viz and torch/cuda/_memory_viz.py: each memory space is a device; blocks have the path of their operation
/// as stack, and their category. Three passes over the trace and one more per space; takes memory for a window of events and for
/// what is live.
std::vector<torch_snapshot_loss> write_torch_snapshot(trace_source_view source, byte_sink_view out,
                                                      const torch_snapshot_options& options = {});

/// What a snapshot lacks of a trace with that profile, besides what `write_torch_snapshot` returns.
[[nodiscard]] std::vector<std::string> torch_snapshot_losses(const profile& run);

}  // namespace memprof::inline MEMPROF_ABI
