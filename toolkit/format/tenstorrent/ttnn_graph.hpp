#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/core_range.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

/// How blocks are placed on the cores of a device.
enum class ttnn_core_model : std::uint8_t {
  one_core,  ///< all on one core, so circular buffers of disjoint cores add up: tt-metal's tracker before September 2026
  per_core,  ///< circular buffers on their own cores, other blocks on all cores with circular buffers; the tracker since then
};

namespace detail {

/// The result of the first pass: buffers that existed before the trace, and the grid of cores.
struct ttnn_graph_survey {
  std::map<std::int64_t, std::pair<std::int64_t, bool>> before;  ///< bytes and whether in DRAM, by counter of the `buffer` node
  core_range grid{0, 0, 0, 0};
};

}  // namespace detail

/// A graph trace of ttnn (the JSON of `GraphProcessor`) as a source: functions are operations, DRAM is a memory space, and L1 is
/// one that each core has for itself, with circular buffers counted separately. DRAM buffers from before the trace are in a
/// segment of their own. There are no times: each node counts as a microsecond. The file is read twice; takes memory for what is
/// live. Needs the component `json`.
class ttnn_graph_source {
 public:
  /// Reads the file for the first time. The caller keeps the file, which must be seekable. Raises an error with file and node if
  /// it is not a graph trace.
  ttnn_graph_source(std::FILE* file, std::filesystem::path path);

  [[nodiscard]] static extend::capture_info info();
  /// Why only the beginning could be read, as a sentence without a full stop; empty if all of it was.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

  /// Writes everything to a `trace_writer` except the end. Reads the file for the second time. Returns the number of freed
  /// buffers that existed before the trace and whose bytes on a core are unknown.
  std::uint64_t write_to(extend::trace_writer& writer, ttnn_core_model model = ttnn_core_model::one_core);

 private:
  std::FILE* file_;
  std::filesystem::path path_;
  std::string damage_;
  detail::ttnn_graph_survey survey_;
};

}  // namespace memprof::inline MEMPROF_ABI
