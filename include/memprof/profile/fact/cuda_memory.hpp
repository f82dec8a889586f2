#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What CUDA itself says of a device's memory, beside the blocks of a capture.

namespace memprof::inline MEMPROF_ABI {

/// What a device held at one of the moments at which a capture asked: when it began and ended, and at snapshots. Bytes.
/// `recorded_bytes` to `unexplained_bytes` add up to `used_bytes`.
struct cuda_device_memory {
  std::string device;                  ///< the name of its space: "cuda:0"
  std::string moment;                  ///< why the row is kept: "first", "last" or "most_used"
  std::int64_t total_bytes = 0;        ///< from `cudaMemGetInfo`, as the next
  std::int64_t used_bytes = 0;         ///< not free, whoever has it: other processes, too
  std::int64_t recorded_bytes = 0;     ///< live in the space
  std::int64_t pending_bytes = 0;      ///< freed in the order of the program, and still in use in its pools
  std::int64_t pool_free_bytes = 0;    ///< kept by pools for later blocks
  std::int64_t unexplained_bytes = 0;  ///< contexts, modules, local memory, blocks from before, other processes; < 0: recorded
                                       ///< blocks that take no memory of the device yet
  std::int64_t pending_peak = 0;       ///< the greatest so far of bytes freed on streams that the host had not waited for

  bool operator==(const cuda_device_memory&) const = default;

  static constexpr std::string_view table = "cuda_devices";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("device", row.device);
    visit("moment", row.moment);
    visit("total_bytes", row.total_bytes);
    visit("used_bytes", row.used_bytes);
    visit("recorded_bytes", row.recorded_bytes);
    visit("pending_bytes", row.pending_bytes);
    visit("pool_free_bytes", row.pool_free_bytes);
    visit("unexplained_bytes", row.unexplained_bytes);
    visit("pending_peak", row.pending_peak);
  }
};

/// What a pool of the stream-ordered allocator held in the segments of a name, by its own high-water marks, which are reset at
/// each snapshot. Bytes.
struct cuda_pool_memory {
  std::string device;               ///< the name of its space: "cuda:0"
  std::string pool;                 ///< as in `stream_usage::pool`; empty: the device's own
  std::string segment;              ///< empty: all segments beyond the first 256 rows
  std::int64_t segments = 0;        ///< how many
  std::int64_t reserved_peak = 0;   ///< the greatest taken from the device
  std::int64_t used_peak = 0;       ///< the greatest in use, including freed blocks that streams may still use
  std::int64_t reserved_bytes = 0;  ///< at the end of the last one
  std::int64_t used_bytes = 0;

  bool operator==(const cuda_pool_memory&) const = default;

  static constexpr std::string_view table = "cuda_pools";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("device", row.device);
    visit("pool", row.pool);
    visit("segment", row.segment);
    visit("segments", row.segments);
    visit("reserved_peak", row.reserved_peak);
    visit("used_peak", row.used_peak);
    visit("reserved_bytes", row.reserved_bytes);
    visit("used_bytes", row.used_bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
