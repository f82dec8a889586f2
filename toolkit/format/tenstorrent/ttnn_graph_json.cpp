#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/json_value.hpp>
#include <memprof/toolkit/format/foreign_json.hpp>
#include <memprof/toolkit/format/tenstorrent/ttnn_graph_json.hpp>
#include <memprof/trace/core_range.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

std::optional<std::vector<core_range>> parse_core_ranges(std::string_view text) {
  if (!text.starts_with('{') || !text.ends_with('}')) return std::nullopt;
  if (text.find_first_not_of("{}[]()xy=,- 0123456789") != text.npos) return std::nullopt;
  std::vector<std::uint8_t> numbers;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] < '0' || text[index] > '9') continue;
    unsigned value = 0;
    for (; index < text.size() && text[index] >= '0' && text[index] <= '9' && value < 256; ++index)
      value = 10 * value + static_cast<unsigned>(text[index] - '0');
    if (value > 255) return std::nullopt;
    numbers.push_back(static_cast<std::uint8_t>(value));
  }
  std::vector<core_range> ranges;
  for (std::size_t index = 0; index + 3 < numbers.size(); index += 4) {
    ranges.push_back({numbers[index], numbers[index + 1], numbers[index + 2], numbers[index + 3]});
    if (!ranges.back().is_valid()) return std::nullopt;
  }
  const auto brackets = static_cast<std::size_t>(std::count(text.begin(), text.end(), '['));
  if (numbers.size() % 4 != 0 || ranges.size() != brackets) return std::nullopt;
  return ranges;
}

namespace {

/// Extracts the nodes from the JSON as a parser delivers values, and hands each on when its object ends. What a node does not
/// need is not kept.
class ttnn_graph_handler {
 public:
  ttnn_graph_handler(const std::filesystem::path& path, const ttnn_node_taker& take_node) : path_(path), take_node_(take_node) {}

  // --- called by a parser -------------------------------------------------------------------------------------------

  void name(std::string_view key) { (depth_ == 2 ? node_key_ : key_) = key; }
  void open(json_kind kind) {
    const bool is_object = kind == json_kind::object;
    if (depth_ == 0 && is_object) raise_about("it", "a graph trace is an array of nodes");
    if (depth_ == 1 && !is_object) raise_about(place(), "not an object");
    if (depth_ == deepest) raise_about(place(), "nested too deeply for a node");
    if (depth_ == 1) {
      node_ = {};
      has_number_as_type_ = true;
    }
    if (depth_ == 2) begin_part(is_object);
    if (depth_ == 3 && inside_ == inside::connections) refuse_number(node_key_);
    if (depth_ == 3 && inside_ == inside::parameters) set_parameter({.kind = kind});
    ++depth_;
  }
  void close() {
    --depth_;
    if (depth_ == 2) inside_ = inside::other;
    if (depth_ == 1) end_node();
  }
  void take(const json_value& value) {
    if (depth_ == 0) raise_about("it", "a graph trace is an array of nodes");
    if (depth_ == 1) raise_about(place(), "not an object");
    if (depth_ == 2) return set_node(value);
    if (depth_ != 3) return;
    if (inside_ == inside::parameters) return set_parameter(value);
    if (inside_ != inside::connections) return;
    constexpr std::size_t max_connections = 1 << 20;
    if (node_.connections.size() == max_connections)
      raise_about(place(), "has more than " + std::to_string(max_connections) + " connections");
    node_.connections.push_back(number(node_key_, value));
  }
  [[nodiscard]] std::int64_t nodes() const noexcept { return nodes_; }

 private:
  /// What an array or object within a node is.
  enum class inside : std::uint8_t { other, parameters, connections };

  static constexpr std::size_t deepest = 64;
  static constexpr std::uint64_t most = std::uint64_t{1} << 48;

  [[nodiscard]] std::string place() const { return "node " + std::to_string(nodes_); }
  [[noreturn]] void raise_about(const std::string& what, const std::string& fault) const {
    raise("cannot read '" + path_.string() + "': " + what + ": " + fault);
  }
  [[noreturn]] void refuse_number(const std::string& key) const {
    raise_about(place(), "'" + key + "' must be a whole number from 0 to 2^48");
  }

  [[nodiscard]] std::int64_t number(const std::string& key, const json_value& value) const {
    std::int64_t found = -1;
    if (!is_number(value, found)) refuse_number(key);
    return found;
  }
  /// A number or, in old traces, its text; up to 2^48, so that all sums fit 63 bits.
  [[nodiscard]] bool is_number(const json_value& value, std::int64_t& found) const {
    if (value.kind == json_kind::natural && value.natural <= most) return found = static_cast<std::int64_t>(value.natural), true;
    if (value.kind != json_kind::string) return false;
    const char* const last = value.text.data() + value.text.size();
    const auto [end, fault] = std::from_chars(value.text.data(), last, found);
    return fault == std::errc{} && end == last && found >= 0 && static_cast<std::uint64_t>(found) <= most;
  }

  void begin_part(bool is_object) {
    if (node_key_ == "counter") refuse_number(node_key_);
    inside_ = node_key_ == "params" && is_object         ? inside::parameters
              : node_key_ == "connections" && !is_object ? inside::connections
                                                         : inside::other;
    if (inside_ == inside::connections) node_.connections.clear();
  }
  void set_node(const json_value& value) {
    if (node_key_ == "counter") node_.counter = number(node_key_, value);
    if (node_key_ == "node_type" && value.kind == json_kind::string) node_.type = value.text;
  }
  void set_parameter(const json_value& value) {
    if (key_ == "size") node_.size = number(key_, value);
    if (key_ == "page_size") node_.page_size = number(key_, value);
    if (key_ == "num_cores") node_.num_cores = number(key_, value);
    if (key_ == "max_size_per_bank") node_.max_size_per_bank = number(key_, value);
    if (key_ == "address" || key_ == "device_id") (void)number(key_, value);
    if (key_ == "core_range_set" && (value.kind != json_kind::string || !parse_core_ranges(value.text))) {
      raise_about(place(), "'core_range_set' must be rectangles of cores from 0 to 255, such as {[0-0 - 1-1]}");
    }
    // For tensors it is a word; the kind of node may come later.
    if (key_ == "buffer_type") has_number_as_type_ = is_number(value, node_.buffer_type);
    if (value.kind != json_kind::string) return;
    if (key_ == "globally_allocated" || key_ == "borrows_memory")
      node_.is_globally_allocated = node_.is_globally_allocated || value.text == "1";
    if (key_ == "name") node_.name = value.text;
    if (key_ == "type") node_.memory = value.text;
    if (key_ == "core_range_set") node_.core_range_set = value.text;
    if (key_ == "shape") node_.shape = value.text;
    if (key_ == "dtype") node_.dtype = value.text;
    if (key_ == "layout") node_.layout = value.text;
  }

  void end_node() {
    if (node_.type.empty()) raise_about(place(), "has no 'node_type'");
    if (node_.type == "tensor") node_.buffer_type = -1;
    if (node_.type != "tensor" && !has_number_as_type_) refuse_number("buffer_type");
    if (node_.counter != nodes_) {
      raise_about(place(), "its 'counter' is " + std::to_string(node_.counter) + ", expected " + std::to_string(nodes_) +
                               ": nodes are missing or out of order");
    }
    ++nodes_;
    take_node_(node_);
  }

  std::filesystem::path path_;
  const ttnn_node_taker& take_node_;
  std::int64_t nodes_ = 0;
  std::size_t depth_ = 0;
  std::string node_key_;  // the latest key of a node
  std::string key_;       // the latest key within it
  inside inside_ = inside::other;
  ttnn_node node_;  // the node being read
  bool has_number_as_type_ = true;
};

}  // namespace

std::string read_ttnn_graph(std::FILE* file, const std::filesystem::path& path, const ttnn_node_taker& take_node) {
  ttnn_graph_handler handler{path, take_node};
  std::string damage = read_foreign_json(file, path, handler);
  if (handler.nodes() == 0)
    raise("cannot read '" + path.string() + "': expected an array of nodes" + (damage.empty() ? "" : "; " + damage));
  return damage;
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
