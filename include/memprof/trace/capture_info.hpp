#pragma once

#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The captured process. Unknown fields are -1 or empty.
struct process_info {
  std::int64_t id = -1;
  std::string host;
  std::string command_line;      ///< its arguments, joined by spaces
  std::int64_t rank = -1;        ///< among the launcher's processes, from 0
  std::int64_t world_size = -1;  ///< number of the launcher's processes
  std::int64_t local_rank = -1;  ///< among the launcher's processes on this host

  bool operator==(const process_info&) const = default;
};

namespace detail {

/// The default name of the segment that ends with the capture.
inline constexpr std::string_view end_segment_name = "END_TRACE";

/// Maximum of `capture_info::largest_blocks`.
inline constexpr std::uint32_t max_largest_blocks = 4096;

}  // namespace detail

namespace extend {

/// What a trace says about itself: where and when it was made, and how detailed its profile is.
struct capture_info {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;              ///< name of the device whose capacities limit spaces; empty: none given
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the start of the capture
  std::uint64_t begin_stamp = 0;
  std::uint32_t timeline_points = 4096;  ///< from here on as in `capture_options`
  std::uint32_t largest_blocks = 10;
  std::uint32_t owners_per_segment = 32;
  std::uint32_t full_segments = 64;
  std::uint32_t segment_names = 64;
  std::uint32_t operations = 4096;
  std::uint64_t leading_thread = 0;  ///< id in the system of the thread that began it, with `infer_operations`; otherwise 0
  process_info process;

  bool operator==(const capture_info&) const = default;
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
