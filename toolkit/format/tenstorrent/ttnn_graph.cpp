#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/tenstorrent/ttnn_graph.hpp>
#include <memprof/toolkit/format/tenstorrent/ttnn_graph_json.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// The bytes of a buffer in its fullest bank. Old traces lack `max_size_per_bank`; for their interleaved buffers the tracker
/// counts all bytes on each core, and so does this.
std::int64_t bytes_on_core(const ttnn_node& node) noexcept {
  if (node.max_size_per_bank >= 0) return node.max_size_per_bank;
  if (node.page_size <= 0 || node.num_cores <= 0) return node.size;
  const std::int64_t pages = (node.size + node.page_size - 1) / node.page_size;
  return (pages + node.num_cores - 1) / node.num_cores * node.page_size;
}

/// Adds a node to the first pass's result.
void add_node(ttnn_graph_survey& survey, const ttnn_node& node) {
  if (node.type == "buffer") survey.before[node.counter] = {std::max<std::int64_t>(node.size, 0), node.memory == "DRAM"};
  if (node.type == "buffer_allocate" && !node.connections.empty()) survey.before.erase(node.connections.front());
  for (const core_range& range : parse_core_ranges(node.core_range_set).value_or(std::vector<core_range>{})) {
    survey.grid.x1 = std::max(survey.grid.x1, range.x1);
    survey.grid.y1 = std::max(survey.grid.y1, range.y1);
  }
}

/// Writes the contents of a graph trace during the second reading.
class ttnn_graph_writer {
 public:
  ttnn_graph_writer(const ttnn_graph_survey& survey, ttnn_core_model model, const std::filesystem::path& path,
                    trace_writer& writer)
      : path_(path),
        model_(model),
        grid_(model == ttnn_core_model::per_core ? survey.grid : core_range{0, 0, 0, 0}),
        writer_(writer) {
    writer_.on_thread(1, "ttnn", 0);
    dram_ = writer_.space("dram");
    l1_ = writer_.space("l1", 0, true);
    std::optional<trace_writer::open_operation_type> before;
    for (const auto& [counter, buffer] : survey.before) {
      if (!buffer.second) continue;
      if (!before) before = writer_.begin_operation("(before the trace)", {});
      allocate(counter, dram_, buffer.first, std::nullopt);
    }
    if (!before) return;
    writer_.end_operation(*before);
    writer_.end_segment("BEFORE_TRACE");
  }

  void node(const ttnn_node& node) {
    writer_.at(1000 * (node.counter + 1));
    if (node.type == "function_start") {
      open_.push_back({node.name, writer_.begin_operation(node.name, {})});
    } else if (node.type == "function_end") {
      end_function(node.name);
    } else if (node.type == "buffer") {
      for (const std::int64_t tensor : node.connections) buffer_of_tensor_[tensor] = node.counter;
    } else if (node.type == "tensor") {
      annotate(node);
    } else if (node.type == "buffer_allocate") {
      allocate_buffer(node);
    } else if (node.type == "buffer_deallocate") {
      deallocate(node);
    } else if (node.type == "circular_buffer_allocate" || (is_per_core() && is_new_kind(node.type))) {
      if (!node.is_globally_allocated) allocate_circular_buffer(node);
    } else if (node.type == "circular_buffer_deallocate_all") {
      writer_.put_event({0, 0, 0, any_core.packed(), event_kind::deallocate_circular_buffers, l1_.value, 0});
    }
  }
  void finish() {
    for (; !open_.empty(); open_.pop_back()) writer_.end_operation(open_.back().second);
  }

  /// Frees of buffers that no earlier node has.
  std::uint64_t unknown_deallocations = 0;

 private:
  struct live_buffer {
    space_id space;
    std::uint64_t address;
    std::int64_t bytes;
    std::optional<core_range> cores;
  };

  [[nodiscard]] bool is_per_core() const noexcept { return model_ == ttnn_core_model::per_core; }
  /// Kinds of program buffers that the tracker did not know before.
  [[nodiscard]] static bool is_new_kind(std::string_view type) noexcept {
    return type == "dataflow_buffer_allocate" || type == "scratchpad_allocate";
  }
  [[noreturn]] void fail(const ttnn_node& node, const char* what) const {
    raise("cannot read '" + path_.string() + "': node " + std::to_string(node.counter) + ": " + what);
  }

  [[nodiscard]] std::uint64_t new_address(std::int64_t bytes) {
    constexpr std::uint64_t last = std::uint64_t{1} << 48;  // the upper bits of an address hold its first core
    if (static_cast<std::uint64_t>(bytes) > last - next_address_)
      raise("cannot read '" + path_.string() + "': its buffers add up to more than 2^48 bytes: no run allocates that much");
    return std::exchange(next_address_, next_address_ + static_cast<std::uint64_t>(bytes));
  }

  void allocate(std::int64_t counter, space_id space, std::int64_t bytes, std::optional<core_range> cores) {
    const std::uint64_t address = new_address(bytes);
    if (cores) {
      writer_.put_event({0, address_on_cores(address, *cores), static_cast<std::uint64_t>(bytes), cores->packed(),
                         event_kind::allocate_on_cores, space.value, 0});
    } else {
      writer_.allocate(space, block_address{address}, static_cast<std::size_t>(bytes), {});
    }
    live_[counter] = {space, address, bytes, cores};
  }

  void allocate_buffer(const ttnn_node& node) {
    if (node.size < 0) fail(node, "expected 'size'");
    const std::int64_t buffer = node.connections.empty() ? node.counter : node.connections.front();
    free(buffer);  // there can be only one
    if (node.memory == "DRAM") return allocate(buffer, dram_, node.size, std::nullopt);
    constexpr std::int64_t l1_small = 3;
    if (is_per_core() && node.buffer_type == l1_small && !l1_small_) l1_small_ = writer_.space("l1_small", 0, true);
    const bool is_small = l1_small_ && node.buffer_type == l1_small;
    allocate(buffer, is_small ? *l1_small_ : l1_, bytes_on_core(node), grid_);
  }

  void allocate_circular_buffer(const ttnn_node& node) {
    if (node.size < 0) fail(node, "expected 'size'");
    constexpr auto tag = static_cast<std::uint16_t>(static_cast<unsigned>(buffer_kind::circular_buffer) << 8);
    std::vector<core_range> ranges{grid_};
    if (is_per_core()) {
      std::optional<std::vector<core_range>> found = parse_core_ranges(node.core_range_set);
      if (!found || found->empty()) fail(node, "expected a 'core_range_set' such as {[0-0 - 1-1]}");
      ranges = std::move(*found);
    }
    const std::uint64_t address = new_address(node.size);
    for (const core_range& range : ranges) {
      writer_.put_event({0, address_on_cores(address, range), static_cast<std::uint64_t>(node.size), range.packed(),
                         event_kind::allocate_on_cores, l1_.value, tag});
    }
  }

  /// In old traces deallocations have size 0: the size is that of the buffer.
  void deallocate(const ttnn_node& node) {
    if (node.connections.empty() || !free(node.connections.front())) ++unknown_deallocations;
  }
  bool free(std::int64_t buffer) {
    const auto found = live_.find(buffer);
    if (found == live_.end()) return false;
    const live_buffer& freed = found->second;
    if (freed.cores) {
      writer_.put_event({0, address_on_cores(freed.address, *freed.cores), 0, freed.cores->packed(),
                         event_kind::deallocate_on_cores, freed.space.value, 0});
    } else {
      writer_.deallocate(freed.space, block_address{freed.address}, static_cast<std::size_t>(freed.bytes));
    }
    live_.erase(found);
    return true;
  }

  void annotate(const ttnn_node& node) {
    const auto buffer = buffer_of_tensor_.find(node.counter);
    if (buffer == buffer_of_tensor_.end()) return;
    const auto block = live_.find(buffer->second);
    buffer_of_tensor_.erase(buffer);
    if (block == live_.end()) return;
    const live_buffer& live = block->second;
    std::string dtype = lower_word(node.dtype);
    if (!node.layout.empty()) dtype.append(" ").append(lower_word(node.layout));
    std::string_view shape = node.shape;
    if (shape.starts_with("Shape(") && shape.ends_with(')')) shape = shape.substr(6, shape.size() - 7);
    const std::uint64_t address = live.cores ? address_on_cores(live.address, *live.cores) : live.address;
    writer_.annotate(block_address{address}, {.shape = shape, .dtype = dtype});
  }
  /// "DataType::BFLOAT16" as "bfloat16".
  [[nodiscard]] static std::string lower_word(std::string_view text) {
    const std::size_t scope = text.rfind(':');
    std::string word{scope == std::string_view::npos ? text : text.substr(scope + 1)};
    for (char& character : word)
      character = character >= 'A' && character <= 'Z' ? static_cast<char>(character | 0x20) : character;
    return word;
  }

  /// Ends a function, and functions within it that an exception ended.
  void end_function(std::string_view name) {
    const auto begun = std::find_if(open_.rbegin(), open_.rend(), [&](const auto& each) { return each.first == name; });
    if (begun == open_.rend()) return;
    for (auto rest = begun - open_.rbegin(); rest >= 0; --rest) {
      writer_.end_operation(open_.back().second);
      open_.pop_back();
    }
  }

  std::filesystem::path path_;
  ttnn_core_model model_;
  core_range grid_;
  trace_writer& writer_;
  space_id dram_;
  space_id l1_;
  std::optional<space_id> l1_small_;
  std::vector<std::pair<std::string, trace_writer::open_operation_type>> open_;
  std::map<std::int64_t, live_buffer> live_;               ///< by counter of the `buffer` node
  std::map<std::int64_t, std::int64_t> buffer_of_tensor_;  ///< by counters
  std::uint64_t next_address_ = std::uint64_t{1} << 12;
};

}  // namespace

}  // namespace detail

ttnn_graph_source::ttnn_graph_source(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  std::rewind(file_);
  damage_ = detail::read_ttnn_graph(file_, path_, [&](const ttnn_node& node) { detail::add_node(survey_, node); });
}

extend::capture_info ttnn_graph_source::info() {
  extend::capture_info made;
  made.library_version = version_string;
  made.operations = imported_operations;
  return made;
}

std::uint64_t ttnn_graph_source::write_to(extend::trace_writer& writer, ttnn_core_model model) {
  std::rewind(file_);
  detail::ttnn_graph_writer target{survey_, model, path_, writer};
  (void)detail::read_ttnn_graph(file_, path_, [&](const ttnn_node& node) { target.node(node); });
  target.finish();
  return target.unknown_deallocations;
}

}  // namespace memprof::inline MEMPROF_ABI
