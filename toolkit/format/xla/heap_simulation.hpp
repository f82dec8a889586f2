#pragma once

#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// @file
/// What an XLA program needs in a memory space, as computed by the memory viewer of openxla/xprof v2.24: the compiler's heap
/// simulation is replayed over logical buffers, and what lives as long as the program is added at every moment. Memory of threads
/// is only in `thread_local_bytes` and `non_reusable`.

namespace memprof::inline MEMPROF_ABI {

/// A block that is live at the peak.
struct hlo_live_buffer {
  std::uint32_t owner = hlo_none;  ///< the buffer that was allocated
  std::uint32_t shown = hlo_none;  ///< the buffer that has its memory now: a different one if it is shared
  bool is_indefinite = false;
};

/// The result of a simulation, in bytes.
struct heap_simulation {
  std::uint32_t trace = hlo_none;  ///< index into `hlo_program::traces`; none: nothing was simulated
  std::int64_t peak = 0;           ///< including `indefinite`
  std::int64_t unpadded_peak = 0;  ///< including `indefinite`, which is padded even here
  std::size_t peak_event = 0;
  std::int64_t indefinite = 0;  ///< allocations that live from begin to end and hold a value

  std::int64_t parameters = 0;  ///< this and the following are sums of allocations
  std::int64_t outputs = 0;     ///< including those that are also parameters (donated buffers)
  std::int64_t constants = 0;
  std::int64_t thread_local_bytes = 0;
  std::int64_t non_reusable = 0;            ///< thread-local memory, and tuples
  std::int64_t all_allocations = 0;         ///< total that the program takes from the device, without thread-local memory
  std::int64_t indefinite_allocations = 0;  ///< including those that hold nothing, without thread-local memory

  std::vector<hlo_live_buffer> live_at_peak;  ///< the indefinite ones first, then in order of allocation
};

/// The memory spaces in which the program has allocations, ascending. Throws `memprof::error` if there are more than a trace can
/// hold.
[[nodiscard]] std::vector<std::int64_t> memory_spaces(const hlo_program& program);

/// Simulates the program in a space. `unpadded` has the bytes of each buffer without padding. Takes time for the events and
/// memory for the buffers. Throws `memprof::error` if the program contradicts itself.
[[nodiscard]] heap_simulation simulate_heap(const hlo_program& program, std::int64_t space,
                                            const std::vector<std::int64_t>& unpadded);

}  // namespace memprof::inline MEMPROF_ABI
