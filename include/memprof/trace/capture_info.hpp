#pragma once

#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The process that was captured. What is not known is -1 or empty.
struct process_info {
  std::int64_t id = -1;
  std::string host;
  std::string command_line;      ///< its arguments, with spaces between
  std::int64_t rank = -1;        ///< among the processes of a launcher, from 0
  std::int64_t world_size = -1;  ///< how many those are
  std::int64_t local_rank = -1;  ///< among those on this host

  bool operator==(const process_info&) const = default;
};

/// The name of the segment that ends with the capture, unless another is given.
inline constexpr std::string_view end_segment_name = "END_TRACE";

/// The greatest `capture_info::largest_blocks`.
inline constexpr std::uint32_t max_largest_blocks = 4096;

/// What a trace says of itself: where and when it was made, and how much detail its profile has.
struct capture_info {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;              ///< name of the device whose capacities limit spaces; empty: none was described
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the capture's begin
  std::uint64_t begin_stamp = 0;
  std::uint32_t timeline_points = 4096;  ///< these as in `capture_options`
  std::uint32_t largest_blocks = 10;
  std::uint32_t owners_per_segment = 32;
  std::uint32_t kept_segments = 64;
  std::uint32_t segment_names = 64;
  std::uint32_t operations = 4096;
  process_info process;

  bool operator==(const capture_info&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI
