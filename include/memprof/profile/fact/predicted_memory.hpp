#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A part of what a simulated device would hold, and how sure that is. Bytes.
struct predicted_memory {
  std::string device;              ///< the name of its space: "cuda:0"
  std::string part;                ///< what holds it: "CUDA context", "parameters"; one of `predicted_part`'s names
  std::int64_t bytes = 0;          ///< what is expected
  std::int64_t least_bytes = 0;    ///< it is at least so much
  std::int64_t most_bytes = 0;     ///< and at most so much; `unknown`: nobody knows
  std::int64_t is_in_blocks = 0;   ///< 1: recorded as blocks, or reserved for them; 0: besides those
  std::string source;              ///< why it is so much, or what is not known about it; empty: simulated

  static constexpr std::int64_t unknown = -1;

  bool operator==(const predicted_memory&) const = default;

  static constexpr std::string_view table = "predicted_memory";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("device", row.device);
    visit("part", row.part);
    visit("bytes", row.bytes);
    visit("least_bytes", row.least_bytes);
    visit("most_bytes", row.most_bytes);
    visit("is_in_blocks", row.is_in_blocks);
    visit("source", row.source);
  }
};

/// The names of the parts that are not categories of blocks.
namespace predicted_part {
inline constexpr std::string_view context = "CUDA context";
inline constexpr std::string_view cublas_workspaces = "cuBLAS workspaces";
inline constexpr std::string_view cudnn_workspaces = "cuDNN workspaces";
inline constexpr std::string_view scratch = "scratch of other kernels";
inline constexpr std::string_view communication = "NCCL buffers";
inline constexpr std::string_view rounding = "rounding";
inline constexpr std::string_view fragmentation = "cached and fragmented";
}  // namespace predicted_part

}  // namespace memprof::inline MEMPROF_ABI
