#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/valgrind/massif.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Appends a text so that it stays on its line.
void append_on_line(std::string& line, std::string_view text) {
  std::string sound;
  detail::append_utf8(sound, text);
  for (const char character : sound) line += static_cast<unsigned char>(character) < 0x20 ? ' ' : character;
}

/// The tree of operations that holds a peak's bytes, indented as massif does: one space per level.
class massif_tree {
 public:
  massif_tree(const stack_table& table, std::uint32_t space)
      : table_(table), self_(table.operations.size()), inclusive_(table.operations.size()), children_(table.operations.size()) {
    for (const stack_row& row : table.rows) {
      if (row.space == space) self_[row.operation] += row.peak_bytes;
    }
    for (std::size_t node = table.operations.size(); node-- > 0;) {
      inclusive_[node] += self_[node];
      if (node == 0 || inclusive_[node] == 0) continue;
      const std::uint32_t parent = table.operations[node].parent;
      inclusive_[parent] += inclusive_[node];
      children_[parent].push_back(static_cast<std::uint32_t>(node));
    }
    for (std::vector<std::uint32_t>& siblings : children_) {
      std::sort(siblings.begin(), siblings.end(),
                [&](std::uint32_t left, std::uint32_t right) { return inclusive_[left] > inclusive_[right]; });
    }
  }

  void write(byte_sink_view out) const {
    struct line {
      std::uint32_t node;
      std::size_t depth;
      bool is_own;  ///< what the node allocated itself, apart from its children
    };
    std::vector<line> open{{0, 0, false}};
    while (!open.empty()) {
      const auto [node, depth, is_own] = open.back();
      open.pop_back();
      std::string_view name = is_own ? "(no operation)" : "(memory space)";
      if (node != 0) name = table_.operations[node].name;
      const bool has_own = !is_own && self_[node] != 0 && !children_[node].empty();
      const std::size_t below = is_own ? 0 : children_[node].size() + (has_own ? 1 : 0);
      write_line(depth, below, is_own ? self_[node] : inclusive_[node], name, is_own && node != 0 ? " itself" : "", out);
      if (is_own) continue;
      if (has_own) open.push_back({node, depth + 1, true});
      for (std::size_t child = children_[node].size(); child-- > 0;) open.push_back({children_[node][child], depth + 1, false});
    }
  }

 private:
  static void write_line(std::size_t depth, std::size_t children, std::int64_t bytes, std::string_view name,
                         std::string_view more, byte_sink_view out) {
    std::string line(depth, ' ');
    line += 'n' + std::to_string(children) + ": " + std::to_string(bytes) + ' ';
    append_on_line(line, name.empty() ? "(unnamed)" : name);
    line += more;
    line += '\n';
    out.write(line);
  }

  const stack_table& table_;
  std::vector<std::int64_t> self_;
  std::vector<std::int64_t> inclusive_;
  std::vector<std::vector<std::uint32_t>> children_;
};

}  // namespace

void write_massif(const profile& source, const space_profile& space, byte_sink_view out, std::size_t max_snapshots) {
  struct massif_snapshot {
    std::int64_t time_ns;
    std::int64_t bytes;
    bool is_peak;
  };
  const vector<timeline_point>& points = space.timeline.points;
  const std::size_t step = points.size() / std::max<std::size_t>(max_snapshots, 1) + 1;
  std::vector<massif_snapshot> snapshots{{0, 0, false}};
  for (std::size_t first = 0; first < points.size(); first += step) {
    massif_snapshot snapshot{points[first].time_ns, 0, false};
    for (std::size_t index = first; index < std::min(first + step, points.size()); ++index)
      snapshot.bytes = std::max(snapshot.bytes, points[index].peak);
    snapshots.push_back(snapshot);
  }
  if (!points.empty()) snapshots.push_back({std::max(source.duration_ns, points.back().time_ns), points.back().current, false});
  // The stretch that contains the peak becomes the peak snapshot.
  for (massif_snapshot& snapshot : snapshots) {
    if (snapshot.bytes != space.cumulative_peak || space.cumulative_peak == 0) continue;
    snapshot = {std::max(snapshot.time_ns, space.peak_time_ns), snapshot.bytes, true};
    break;
  }

  std::string text = std::string{"desc: memprof "} + version_string + ", memory space ";
  append_on_line(text, space.name);
  text += "\ncmd: ";
  append_on_line(text, source.process.command_line.empty() ? space.name : source.process.command_line);
  text += "\ntime_unit: ms\n";
  std::int64_t last_ns = 0;
  for (std::size_t index = 0; index < snapshots.size(); ++index) {
    const massif_snapshot& snapshot = snapshots[index];
    last_ns = std::max(last_ns, snapshot.time_ns);
    text += "#-----------\nsnapshot=" + std::to_string(index) + "\n#-----------\ntime=" + std::to_string(last_ns / 1'000'000) +
            "\nmem_heap_B=" + std::to_string(snapshot.bytes) +
            "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=" + (snapshot.is_peak ? "peak\n" : "empty\n");
    out.write(text);
    text.clear();
    if (!snapshot.is_peak) continue;
    const stack_table table = stack_table_of(source);
    const auto of = static_cast<std::uint32_t>(&space - source.spaces.data());
    massif_tree{table, of}.write(out);
  }
}

}  // namespace memprof::inline MEMPROF_ABI
