#pragma once

#include <memprof/memprof.hpp>


#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memprof {

/// The memory of one training run in one memory space, from a tracker's log or from a profile. Bytes, as in a profile.
struct memory_summary {
  std::string source;    ///< the file it was read from
  std::size_t line = 0;  ///< where it begins in a log, counted from 1; 0 if it is from a profile
  std::string section;   ///< what the log calls it: the last line of text before it; empty if there is none
  std::string rank;      ///< of the process that wrote it, where a launcher labels lines with it; else empty
  std::string space = "DRAM";
  std::optional<std::int64_t> parameters;  ///< the number of them that the log tells
  std::vector<segment_usage> segments;     ///< of a log: only names and bytes
  std::int64_t overall_peak = 0;
  std::int64_t final_usage = 0;
  std::optional<std::size_t> peak_segment;  ///< index into `segments` of the one that reached the overall peak
  std::int64_t resolution = 1;              ///< the bytes are rounded to about multiples of that many
  std::optional<live_set> live_at_peak;     ///< only from a profile
  std::string device;                       ///< its name, if a profile tells it
  std::optional<std::int64_t> capacity;     ///< of the space on it
  std::vector<std::string> remarks;         ///< what was missing or does not agree, one sentence each
};

}  // namespace memprof
