#pragma once

#include <memprof/detail/error.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// A node of a ttnn graph trace. Numbers that it lacks are -1, texts empty.
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
  bool is_globally_allocated = false;  ///< or borrows its memory: it lies in a tensor's
  std::string core_range_set;
  std::string shape;
  std::string dtype;
  std::string layout;
  std::vector<std::int64_t> connections;
};

namespace detail {

/// Takes the nodes out of the JSON, each when its object ends.
template <class Sink>
class ttnn_graph_handler {
 public:
  using json = nlohmann::ordered_json;

  ttnn_graph_handler(const std::filesystem::path& path, Sink& sink) : path_(path), sink_(sink) {}

  /// As the parser of nlohmann/json calls it: false gives the value's memory back.
  bool operator()(int depth, json::parse_event_t what, json& parsed) {
    using event = json::parse_event_t;
    if (depth == 0 && (what == event::object_start || what == event::value))
      raise_about("it", "a graph trace is an array of nodes");
    if (depth > deepest) raise_about(place(), "is nested too deep for a node");
    if (depth != 1) return true;
    if (what == event::object_end) return add(parsed), false;
    if (what == event::value || what == event::array_end) raise_about(place(), "is no object");
    return true;
  }
  [[nodiscard]] std::int64_t nodes() const noexcept { return nodes_; }

 private:
  static constexpr int deepest = 64;

  [[nodiscard]] std::string place() const { return "node " + std::to_string(nodes_); }
  [[noreturn]] void raise_about(const std::string& what, const std::string& fault) const {
    raise("cannot read '" + path_.string() + "': " + what + ": " + fault);
  }

  /// A number, or as old traces have it the text of one; up to 2^48, so that no sum leaves 63 bits.
  [[nodiscard]] std::int64_t number(const std::string& key, const json& value) const {
    std::int64_t found = -1;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= most) found = value.get<std::int64_t>();
    if (value.is_string()) {
      const std::string& text = value.get_ref<const std::string&>();
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), found);
      if (fault != std::errc{} || end != text.data() + text.size()) found = -1;
    }
    if (found < 0 || static_cast<std::uint64_t>(found) > most)
      raise_about(place(), "'" + key + "' must be a whole number from 0 to 2^48");
    return found;
  }

  void add(const json& item) {
    ttnn_node node;
    for (const auto& [key, value] : item.items()) {
      if (key == "counter") node.counter = number(key, value);
      if (key == "node_type" && value.is_string()) node.type = value.template get<std::string>();
      if (key == "params" && value.is_object()) add_parameters(node, value);
      if (key == "connections" && value.is_array()) {
        for (const json& each : value) node.connections.push_back(number(key, each));
      }
    }
    if (node.type.empty()) raise_about(place(), "it has no 'node_type'");
    if (node.counter != nodes_) {
      raise_about(place(), "its 'counter' is " + std::to_string(node.counter) + ", expected " + std::to_string(nodes_) +
                               ": nodes are missing or out of order");
    }
    ++nodes_;
    sink_.node(node);
  }

  void add_parameters(ttnn_node& node, const json& parameters) {
    for (const auto& [key, value] : parameters.items()) {
      if (key == "buffer_type" && node.type != "tensor") node.buffer_type = number(key, value);
      if (key == "size") node.size = number(key, value);
      if (key == "page_size") node.page_size = number(key, value);
      if (key == "num_cores") node.num_cores = number(key, value);
      if (key == "max_size_per_bank") node.max_size_per_bank = number(key, value);
      if (!value.is_string()) continue;
      const std::string& text = value.template get_ref<const std::string&>();
      if (key == "globally_allocated" || key == "borrows_memory")
        node.is_globally_allocated = node.is_globally_allocated || text == "1";
      if (key == "name") node.name = text;
      if (key == "type") node.memory = text;
      if (key == "core_range_set") node.core_range_set = text;
      if (key == "shape") node.shape = text;
      if (key == "dtype") node.dtype = text;
      if (key == "layout") node.layout = text;
    }
  }

  static constexpr std::uint64_t most = std::uint64_t{1} << 48;

  std::filesystem::path path_;
  Sink& sink_;
  std::int64_t nodes_ = 0;
};

/// Reads a graph trace; `sink.node(node)` gets each node. Returns why the end is missing, as a sentence without its stop; empty:
/// it is not. Raises an error, with file and node, for what is no graph trace. `file` stands at its begin.
template <class Sink>
[[nodiscard]] std::string read_ttnn_graph(std::FILE* file, const std::filesystem::path& path, Sink& sink) {
  ttnn_graph_handler<Sink> handler{path, sink};
  std::string damage;
  try {
    const nlohmann::ordered_json rest = nlohmann::ordered_json::parse(file, std::ref(handler));
    (void)rest;
  } catch (const nlohmann::ordered_json::parse_error& fault) {
    damage = "byte " + std::to_string(fault.byte) + ": not JSON from here on";
  } catch (const nlohmann::ordered_json::out_of_range&) {
    damage = "it has a number that no computer can hold";
  }
  if (handler.nodes() == 0)
    raise("cannot read '" + path.string() + "': expected an array of nodes" + (damage.empty() ? "" : "; " + damage));
  return damage;
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
