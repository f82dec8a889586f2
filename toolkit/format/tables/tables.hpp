#pragma once

#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/csv_text.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// @file
/// Runs as tables that DuckDB, Polars, Spark or pandas can query directly: one file per table, CSV with a header or JSON lines.
/// The first column of each is the run's name, so that files of many runs form one table: `SELECT * FROM 'out/*/runs.csv'`.

namespace memprof::inline MEMPROF_ABI {

enum class table_format : std::uint8_t { csv, json_lines };

/// The rows of one table, all with the same columns.
template <byte_sink Sink>
class table_writer {
 public:
  table_writer(Sink& out, table_format format) : out_(out), format_(format) {}

  /// Takes the columns from a sample row added by `put`, so that a table without rows has them too.
  template <class Put>
  void header(Put&& put) {
    is_header_ = true;
    put();
    is_header_ = false;
  }
  /// Adds a row of alternating columns and values: `row("run", name, "bytes", 12)`. Values are integers and texts.
  template <class... Cells>
  void row(const Cells&... cells) {
    static_assert(sizeof...(cells) % 2 == 0);
    line_.clear();
    if (is_header_) {
      if (format_ != table_format::csv) return;  // JSON lines repeat them in each line
      each([&](std::string_view column, const auto&) { next_cell(line_) += column; }, cells...);
      return out_.write(line_ + '\n');
    }
    if (format_ == table_format::json_lines) line_ = '{';
    each([&](std::string_view column, const auto& value) { cell(column, value); }, cells...);
    if (format_ == table_format::json_lines) line_ += '}';
    line_ += '\n';
    out_.write(line_);
  }

 private:
  template <class Visit, class Value, class... Rest>
  static void each(Visit&& visit, std::string_view column, const Value& value, const Rest&... rest) {
    visit(column, value);
    if constexpr (sizeof...(rest) != 0) each(visit, rest...);
  }

  [[nodiscard]] static std::string& next_cell(std::string& line) {
    if (!line.empty() && line != "{") line += ',';
    return line;
  }

  template <class Value>
  void cell(std::string_view column, const Value& value) {
    (void)next_cell(line_);
    if (format_ == table_format::json_lines) detail::append_json_key(line_, column);
    if constexpr (std::is_same_v<Value, bool>) {
      line_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<Value>) {
      line_ += std::to_string(value);
    } else if (const std::string_view text = value; format_ == table_format::json_lines) {
      detail::append_json_string(line_, text);
    } else {
      append_quoted(text);
    }
  }

  /// Always quoted, so that an empty text is not taken for null.
  void append_quoted(std::string_view text) {
    std::string sound;
    detail::append_utf8(sound, text);
    sound.erase(std::remove(sound.begin(), sound.end(), '\0'), sound.end());  // CSV readers reject it
    detail::append_csv_text(line_, sound, detail::csv_quotes::always);
  }

  Sink& out_;
  table_format format_;
  bool is_header_ = false;
  std::string line_;
};

/// `runs`: a row for each memory space of a run, with its totals and peak.
template <byte_sink Sink>
void write_runs_table(const profile& source, std::string_view run, table_writer<Sink>& out) {
  const auto put = [&](const space_profile& space) {
    out.row("run", run, "space", space.name, "host", source.process.host, "pid", source.process.id, "rank", source.process.rank,
            "world_size", source.process.world_size, "local_rank", source.process.local_rank, "command",
            source.process.command_line, "library_version", source.library_version, "mode", to_string(source.mode), "device",
            source.device, "begin_unix_ns", source.begin_unix_ns, "duration_ns", source.duration_ns, "exact", source.exact,
            "complete", source.complete, "peak_bytes", space.cumulative_peak, "peak_time_ns", space.peak_time_ns, "peak_segment",
            space.peak_segment, "peak_operation", space.peak_operation, "end_bytes", space.cumulative_current, "allocated_bytes",
            space.allocations, "freed_bytes", space.deallocations, "allocations", space.allocation_count, "deallocations",
            space.deallocation_count, "reserved_peak_bytes", space.reserved.peak, "reserved_end_bytes", space.reserved.current,
            "capacity_bytes", space.capacity, "out_of_memory",
            static_cast<std::int64_t>(space.out_of_memory.size()) + space.further_out_of_memory.count, "unmatched_frees",
            space.anomalies.unmatched_frees.count);
  };
  out.header([&] { put({}); });
  for (const space_profile& space : source.spaces) put(space);
}

/// What identifies a run besides its name: the commit it was built from, the branch, a batch size.
struct run_label {
  std::string name;
  std::string value;
};

/// `labels`: a row for each label of the run, to be joined with the other tables by `run` and `rank`. Values are texts.
template <byte_sink Sink>
void write_labels_table(const profile& source, std::string_view run, const std::vector<run_label>& labels,
                        table_writer<Sink>& out) {
  const auto put = [&](const run_label& each) {
    out.row("run", run, "rank", source.process.rank, "name", each.name, "value", each.value);
  };
  out.header([&] { put({}); });
  for (const run_label& each : labels) put(each);
}

/// `segments`: a row for each memory space of each segment.
template <byte_sink Sink>
void write_segments_table(const profile& source, std::string_view run, table_writer<Sink>& out) {
  const auto put = [&](const space_profile& space, std::size_t index, const segment& when, const segment_usage& usage) {
    out.row("run", run, "space", space.name, "segment", index, "name", usage.segment, "begin_ns", when.begin_ns, "end_ns",
            when.end_ns, "peak_bytes", usage.segment_peak, "change_bytes", usage.segment_change, "cumulative_peak_bytes",
            usage.cumulative_peak, "end_bytes", usage.cumulative_current, "allocated_bytes", usage.allocations, "freed_bytes",
            usage.deallocations, "allocations", usage.allocation_count, "deallocations", usage.deallocation_count, "peak_time_ns",
            usage.peak_time_ns, "peak_operation", usage.peak_operation);
  };
  out.header([&] { put({}, 0, {}, {}); });
  for (const space_profile& space : source.spaces) {
    for (std::size_t index = 0; index < space.segments.size() && index < source.segments.size(); ++index)
      put(space, index, source.segments[index], space.segments[index]);
  }
}

/// `operations`: a row for each memory space of each operation path. The `self_` columns of a space add up to what was allocated
/// in operations; `peak_bytes` is what the operation itself had live at the space's peak.
template <byte_sink Sink>
void write_operations_table(const profile& source, std::string_view run, table_writer<Sink>& out) {
  std::map<std::pair<std::string_view, std::string_view>, std::int64_t> at_peak;
  for (const space_profile& space : source.spaces) {
    for (const owned_bytes& owner : space.live_at_peak.by_operation) at_peak[{space.name, owner.owner}] = owner.bytes;
  }
  const auto put = [&](const operation_profile& operation, const operation_usage& usage) {
    const auto found = at_peak.find({usage.space, operation.path});
    out.row("run", run, "space", usage.space, "path", operation.path, "name", operation.name, "invocations",
            operation.invocations, "self_allocated_bytes", usage.self_allocated, "self_freed_bytes", usage.self_freed,
            "self_allocations", usage.allocation_count, "self_deallocations", usage.deallocation_count, "allocated_bytes",
            usage.allocated, "freed_bytes", usage.freed, "delta_bytes", usage.total_delta, "max_delta_bytes", usage.max_delta,
            "max_rise_bytes", usage.peak, "end_bytes", usage.live, "peak_bytes",
            found == at_peak.end() ? std::int64_t{0} : found->second);
  };
  out.header([&] { put({}, {}); });
  for (const operation_profile& operation : source.operations) {
    for (const operation_usage& usage : operation.usage) put(operation, usage);
  }
}

namespace detail {

/// The parts of an annotation.
struct annotation_parts {
  std::string_view parts[4];  ///< name, shape, dtype, requires_grad

  explicit annotation_parts(std::string_view text) {
    for (std::string_view& part : parts) {
      const std::size_t end = std::min(text.find(name_separator), text.size());
      part = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
};

/// Writes the blocks and events of a trace in passing.
template <byte_sink Sink>
class block_table_fold : public replay_handler {
 public:
  block_table_fold(std::string_view run, table_writer<Sink>& blocks, table_writer<Sink>& events)
      : run_(run), blocks_(blocks), events_(events) {}

  void on_allocation(const replay_state& at, const replayed_block& block) {
    put(at, "allocate", block.space, block.thread, block.address, block.bytes, block.operation, to_string(block.category), "");
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t thread) {
    put(at, "deallocate", block.space, thread, block.address, block.bytes, block.operation, to_string(block.category), "");
    put_block(at, block, at.now_ns);
  }
  void on_unmatched_free(const replay_state& at, const event& happened, std::uint32_t thread) {
    put(at, "unmatched_free", happened.space, thread, happened.address, happened.bytes, 0, "", "");
  }
  void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t thread) {
    put(at, to_string(happened.kind), happened.space, thread, happened.address, happened.bytes, 0, "", "");
  }
  void on_segment_end(const replay_state& at, label name) {
    put(at, "segment_end", any_space, 0, 0, 0, 0, "", at.names.text(name));
  }
  /// For a block still live at the end, the time of its free is -1.
  void put_block(const replay_state& at, const replayed_block& block, std::int64_t freed_ns) {
    const annotation_parts parts{at.names.text(block.annotation)};
    blocks_.row("run", run_, "space", at.space_name(block.space), "address", block.address, "bytes", block.bytes, "allocated_ns",
                block.time_ns, "freed_ns", freed_ns, "thread", block.thread, "operation", path_of(at, block.operation),
                "category", to_string(block.category), "name", parts.parts[0], "shape", parts.parts[1], "dtype", parts.parts[2]);
  }

 private:
  void put(const replay_state& at, std::string_view kind, std::uint8_t space, std::uint32_t thread, std::uint64_t address,
           std::uint64_t bytes, std::uint32_t operation, std::string_view category_name, std::string_view name) {
    events_.row("run", run_, "time_ns", at.now_ns, "thread", thread, "kind", kind, "space",
                space == any_space ? std::string_view{} : at.space_name(space), "address", address, "bytes", bytes, "operation",
                path_of(at, operation), "category", category_name, "name", name);
  }
  /// Paths are built once each: operations are few, events are many.
  [[nodiscard]] const std::string& path_of(const replay_state& at, std::uint32_t operation) {
    while (paths_.size() < at.operations().size()) {
      const operation_tree::node& made = at.operations()[paths_.size()];
      std::string path = paths_.empty() ? std::string{} : paths_[made.parent];
      if (!paths_.empty()) append_operation(path, at.names.text(made.name));
      paths_.push_back(std::move(path));
    }
    return paths_[operation];
  }

  std::string run_;
  table_writer<Sink>& blocks_;
  table_writer<Sink>& events_;
  std::vector<std::string> paths_;
};

}  // namespace detail

/// `blocks` and `events` of a trace: a row for each block ever allocated, with its operation, category and name and the time it
/// was freed; and a row for each event. Two passes; takes memory for what is live.
template <trace_source Source, byte_sink Sink>
void write_block_tables(const Source& source, std::string_view run, table_writer<Sink>& blocks, table_writer<Sink>& events) {
  clock_visitor times;
  source.visit(times);
  detail::block_table_fold<Sink> fold{run, blocks, events};
  trace_replay replay{fold, times.clock};
  blocks.header([&] { fold.put_block(replay.state(), {}, -1); });
  events.header([&] { fold.on_segment_end(replay.state(), 0); });
  source.visit(replay);
  for (std::size_t space = 0; space < any_space; ++space) {
    replay.for_each_live(static_cast<std::uint8_t>(space),
                         [&](const replayed_block& block) { fold.put_block(replay.state(), block, -1); });
  }
}

/// `blocks` of a profile: the largest at each space's peak, the only single blocks a profile knows.
template <byte_sink Sink>
void write_block_table(const profile& source, std::string_view run, table_writer<Sink>& out) {
  const auto put = [&](const space_profile& space, const live_block& block) {
    out.row("run", run, "space", space.name, "address", block.address, "bytes", block.bytes, "operation", block.operation,
            "category", to_string(block.category), "name", block.name, "shape", block.shape, "dtype", block.dtype);
  };
  out.header([&] { put({}, {}); });
  for (const space_profile& space : source.spaces) {
    for (const live_block& block : space.live_at_peak.largest_blocks) put(space, block);
  }
}

}  // namespace memprof::inline MEMPROF_ABI
