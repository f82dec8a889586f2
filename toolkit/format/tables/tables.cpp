#include <memprof/config.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/csv_text.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
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
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::string& table_writer::next_cell() {
  if (!line_.empty() && line_ != "{") line_ += ',';
  return line_;
}

void table_writer::begin_cell(std::string_view column) {
  (void)next_cell();
  if (format_ == table_format::json_lines) detail::append_json_key(line_, column);
}

void table_writer::append_text(std::string_view text) {
  if (format_ == table_format::json_lines) return detail::append_json_string(line_, text);
  // Always quoted, so that an empty text is not taken for null.
  std::string sound;
  detail::append_utf8(sound, text);
  sound.erase(std::remove(sound.begin(), sound.end(), '\0'), sound.end());  // CSV readers reject it
  detail::append_csv_text(line_, sound, detail::csv_quotes::always);
}

void table_writer::parquet_text(std::string_view text) {
  line_.clear();
  detail::append_utf8(line_, text);
  parquet_.add(std::string_view{line_});
}

void write_runs_table(const profile& source, std::string_view run, table_writer& out) {
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

void write_labels_table(const profile& source, std::string_view run, const std::vector<run_label>& labels, table_writer& out) {
  const auto put = [&](const run_label& each) {
    out.row("run", run, "rank", source.process.rank, "name", each.name, "value", each.value);
  };
  out.header([&] { put({}); });
  for (const run_label& each : labels) put(each);
}

void write_segments_table(const profile& source, std::string_view run, table_writer& out) {
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

void write_operations_table(const profile& source, std::string_view run, table_writer& out) {
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

annotation_parts::annotation_parts(std::string_view text) {
  for (std::string_view& part : parts) {
    const std::size_t end = std::min(text.find(name_separator), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace detail

namespace {

/// Writes the blocks and events of a trace in passing.
class block_table_fold : public replay_handler {
 public:
  block_table_fold(std::string_view run, table_writer& blocks, table_writer& events)
      : run_(run), blocks_(blocks), events_(events) {}

  void on_allocation(const replay_state& at, const replayed_block& block) {
    put(at, "allocate", block.space, block.thread, block.address, block.bytes, block.operation, to_string(block.category), "");
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t thread) {
    put(at, "deallocate", block.space, thread, block.address, block.bytes, block.operation, to_string(block.category), "");
    put_block(at, block, at.now_ns);
  }
  void on_unmatched_free(const replay_state& at, const extend::event& happened, std::uint32_t thread) {
    put(at, "unmatched_free", happened.space, thread, happened.address, happened.bytes, 0, "", "");
  }
  void on_allocator_event(const replay_state& at, const extend::event& happened, std::uint32_t thread) {
    put(at, to_string(happened.kind), happened.space, thread, happened.address, happened.bytes, 0, "", "");
  }
  void on_segment_end(const replay_state& at, extend::label name) {
    put(at, "segment_end", extend::any_space, 0, 0, 0, 0, "", at.names.text(name));
  }
  /// For a block still live at the end, the time of its free is -1.
  void put_block(const replay_state& at, const replayed_block& block, std::int64_t freed_ns) {
    const detail::annotation_parts parts{at.names.text(block.annotation)};
    blocks_.row("run", run_, "space", at.space_name(block.space), "address", block.address, "bytes", block.bytes, "allocated_ns",
                block.time_ns, "freed_ns", freed_ns, "thread", block.thread, "operation", path_of(at, block.operation),
                "category", to_string(block.category), "name", parts.parts[0], "shape", parts.parts[1], "dtype", parts.parts[2]);
  }

 private:
  void put(const replay_state& at, std::string_view kind, std::uint8_t space, std::uint32_t thread, std::uint64_t address,
           std::uint64_t bytes, std::uint32_t operation, std::string_view category_name, std::string_view name) {
    events_.row("run", run_, "time_ns", at.now_ns, "thread", thread, "kind", kind, "space",
                space == extend::any_space ? std::string_view{} : at.space_name(space), "address", address, "bytes", bytes,
                "operation", path_of(at, operation), "category", category_name, "name", name);
  }
  /// Paths are built once each: operations are few, events are many.
  [[nodiscard]] const std::string& path_of(const replay_state& at, std::uint32_t operation) {
    while (paths_.size() < at.operations().size()) {
      const detail::operation_tree::node& made = at.operations()[paths_.size()];
      std::string path = paths_.empty() ? std::string{} : paths_[made.parent];
      if (!paths_.empty()) detail::append_operation(path, at.names.text(made.name));
      paths_.push_back(std::move(path));
    }
    return paths_[operation];
  }

  std::string run_;
  table_writer& blocks_;
  table_writer& events_;
  std::vector<std::string> paths_;
};

}  // namespace

void write_block_tables(const trace_source_view& source, std::string_view run, table_writer& blocks, table_writer& events) {
  clock_visitor times;
  source.visit(times);
  block_table_fold fold{run, blocks, events};
  trace_replay replay{fold, times.clock};
  blocks.header([&] { fold.put_block(replay.state(), {}, -1); });
  events.header([&] { fold.on_segment_end(replay.state(), 0); });
  source.visit(replay);
  for (std::size_t space = 0; space < extend::any_space; ++space) {
    replay.for_each_live(static_cast<std::uint8_t>(space),
                         [&](const replayed_block& block) { fold.put_block(replay.state(), block, -1); });
  }
}

void write_block_table(const profile& source, std::string_view run, table_writer& out) {
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
