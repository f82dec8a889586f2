#pragma once

#include <memprof/trace/core_range.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// A node of a ttnn graph trace. Missing numbers are -1, missing texts empty.
struct ttnn_node {
  std::int64_t counter = -1;
  std::string type;               ///< "buffer_allocate"
  std::string name;               ///< of a function
  std::string memory;             ///< `params.type`: "DRAM" or "L1"
  std::int64_t buffer_type = -1;  ///< 0 DRAM, 1 L1, 2 system memory, 3 L1_SMALL, 4 TRACE
  std::int64_t size = -1;
  std::int64_t page_size = -1;
  std::int64_t num_cores = -1;  ///< 0: interleaved
  std::int64_t max_size_per_bank = -1;
  bool is_globally_allocated = false;  ///< or borrows its memory: it shares the memory of a tensor
  std::string core_range_set;
  std::string shape;
  std::string dtype;
  std::string layout;
  std::vector<std::int64_t> connections;
};

namespace detail {

/// The rectangles in "{[0-0 - 1-1], [2-0 - 3-1]}" or "{[(x=0,y=0) - (x=7,y=7)]}"; none for "{}". Nothing if the text has another
/// form.
[[nodiscard]] std::optional<std::vector<core_range>> parse_core_ranges(std::string_view text);

using ttnn_node_taker = std::function<void(const ttnn_node& node)>;

/// Reads a graph trace; `take_node` gets each node. Returns why the end is missing, as a sentence without a full stop;
/// empty if it is not. Raises an error with file and node if it is not a graph trace. `file` must be at its start.
[[nodiscard]] std::string read_ttnn_graph(std::FILE* file, const std::filesystem::path& path, const ttnn_node_taker& take_node);

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
