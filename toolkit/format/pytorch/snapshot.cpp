#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/format_losses.hpp>
#include <memprof/toolkit/format/pytorch/pickle_writer.hpp>
#include <memprof/toolkit/format/pytorch/snapshot.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_events.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_names.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

class torch_snapshot_writer {
 public:
  explicit torch_snapshot_writer(byte_sink_view out) : out_(out) {}

  [[nodiscard]] std::vector<torch_snapshot_loss> write(trace_source_view source, const torch_snapshot_options& options) {
    clock_visitor times;
    source.visit(times);
    snapshot_scan scan;
    segment_list steps;
    combined both{scan, steps};
    trace_replay scanner{both, times.clock};
    source.visit(scanner);
    const std::vector<int> device_of = snapshot_devices(scan, scanner.state());

    std::vector<torch_snapshot_loss> losses;
    std::vector<segment_row> segments;
    out_.begin_dictionary();
    out_.begin_items();
    out_.name("device_traces");
    const int last_device = *std::max_element(device_of.begin(), device_of.end());
    out_.list(static_cast<std::size_t>(last_device) + 1, [&](std::size_t device) {
      const auto found = std::find(device_of.begin(), device_of.end(), static_cast<int>(device));
      if (found == device_of.end()) return out_.begin_list();
      const auto space = static_cast<std::uint8_t>(found - device_of.begin());
      losses.push_back(write_events(source, times, space, scan.spaces[space], options, static_cast<int>(device), segments));
    });
    out_.name("segments");
    out_.list(segments.size(), [&](std::size_t index) { write_segment(scanner.state(), segments[index]); });
    write_settings(scanner.state(), device_of, losses);
    write_annotations(scanner.state(), steps, last_device);
    out_.end_dictionary_items();
    out_.finish();
    return losses;
  }

 private:
  using memo_id = pickle_writer::memo_id;

  struct segment_list : replay_handler {
    struct row {
      label name;
      std::int64_t end_ns;
    };
    std::vector<row> rows;
    void on_segment_end(const replay_state& at, label name) {
      if (rows.size() < 10'000) rows.push_back({name, at.now_ns});  // nobody reads more marks
    }
  };
  struct combined : replay_handler {
    combined(snapshot_scan& first, segment_list& second) : scan(first), steps(second) {}
    snapshot_scan& scan;
    segment_list& steps;
    void on_allocation(const replay_state& at, const replayed_block& block) { scan.on_allocation(at, block); }
    void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t thread) {
      scan.on_deallocation(at, block, thread);
    }
    void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t thread) {
      scan.on_allocator_event(at, happened, thread);
    }
    void on_segment_end(const replay_state& at, label name) { steps.on_segment_end(at, name); }
  };
  /// In PyTorch's terms: live, freed while streams may still use it, or free.
  enum class block_state : std::uint8_t { active_allocated, active_pending_free, inactive };
  struct block_row {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint32_t operation;
    block_state state;
  };
  struct segment_row {
    int device;
    std::uint64_t address;
    std::uint64_t bytes;
    snapshot_stream stream;
    std::vector<block_row> blocks;
  };

  [[nodiscard]] torch_snapshot_loss write_events(trace_source_view source, const clock_visitor& times, std::uint8_t space,
                                                 const snapshot_scan::space_changes& changes,
                                                 const torch_snapshot_options& options, int device,
                                                 std::vector<segment_row>& segments) {
    std::uint64_t first = 0;
    std::uint64_t last = changes.count;
    if (changes.count > options.events) {
      const std::uint64_t before = options.events / 4 * 3;
      first = std::min(changes.peak_at - std::min(changes.peak_at, before), changes.count - options.events);
      last = first + options.events;
    }
    snapshot_fold fold{space, first, last};
    trace_replay replay{fold, times.clock};
    source.visit(replay);
    const replay_state& at = replay.state();
    const std::int64_t begin_us = at.info.begin_unix_ns / 1000;
    const std::vector<snapshot_event>& events = fold.events();
    const std::map<std::uint64_t, snapshot_segment> ranges = fold.segments();
    const bool has_own_segments = fold.has_own_segments();

    // One more event says that categories which were never set are unknown.
    std::size_t written = 0;
    const auto next_item = [&] {
      if (written++ % pickle_writer::max_items != 0) return;
      if (written != 1) out_.end_list_items();
      out_.begin_items();
    };
    out_.begin_list();
    for (const snapshot_event& happened : events) {
      const bool is_of_segment = happened.action == torch_action::segment_alloc || happened.action == torch_action::segment_free;
      if (is_of_segment && !has_own_segments) continue;
      next_item();
      write_event(at, happened, torch_action_names[static_cast<std::size_t>(happened.action)], begin_us);
    }
    next_item();
    snapshot_event end{torch_action::alloc, category::other, 0, 0, 0, fold.end_ns(), 0, 0};
    write_event(at, end, "snapshot", begin_us);
    out_.end_list_items();

    auto next_block = fold.blocks().begin();
    for (const auto& [begin, range] : ranges) {
      segment_row row{device, begin, range.bytes, streams_.of(at, range.stream), {}};
      std::uint64_t reached = begin;
      const std::uint64_t end_of_range = begin + range.bytes;
      const auto fill_to = [&](std::uint64_t address) {
        if (address > reached) row.blocks.push_back({reached, address - reached, 0, block_state::inactive});
      };
      for (; next_block != fold.blocks().end() && next_block->first < end_of_range; ++next_block) {
        if (next_block->first < reached) continue;
        fill_to(next_block->first);
        const replayed_block& held = next_block->second;
        row.blocks.push_back({next_block->first, held.bytes, held.operation,
                              held.is_awaited ? block_state::active_pending_free : block_state::active_allocated});
        reached = next_block->first + held.bytes;
      }
      fill_to(end_of_range);
      segments.push_back(std::move(row));
    }
    return {std::string{at.space_name(space)}, changes.count - (last - first), fold.left_out_blocks(), fold.left_out_bytes(),
            !has_own_segments};
  }

  [[nodiscard]] static std::string_view state_name(block_state state) noexcept {
    constexpr std::string_view names[] = {"active_allocated", "active_pending_free", "inactive"};
    return names[static_cast<std::size_t>(state)];
  }

  void write_event(const replay_state& at, const snapshot_event& happened, std::string_view action, std::int64_t begin_us) {
    const snapshot_stream stream = streams_.of(at, happened.stream);
    out_.begin_dictionary();
    out_.begin_items();
    out_.name("action");
    out_.name(action);
    if (action != "oom") {
      out_.name("addr");
      out_.integer(happened.address);
    } else if (happened.address != unknown_device_free) {
      out_.name("device_free");
      out_.integer(happened.address);
    }
    out_.name("size");
    out_.integer(happened.bytes);
    out_.name("stream");
    out_.integer(stream.stream);
    out_.name("time_us");
    out_.integer(begin_us + happened.time_ns / 1000);
    out_.name("category");
    out_.name(happened.of == category::other ? std::string_view{"unknown"} : to_string(happened.of));
    out_.name("pool_id");
    out_.pair(stream.pool_first, stream.pool_second);
    if (happened.annotation != 0) {
      std::string text{at.names.text(happened.annotation)};
      std::replace(text.begin(), text.end(), name_separator, ' ');
      out_.name("user_metadata");
      out_.name(text);
    }
    out_.name("frames");
    put_frames(at, happened.operation);
    out_.end_dictionary_items();
  }

  /// Writes the frames of an operation, innermost first, or a reference to them.
  void put_frames(const replay_state& at, std::uint32_t operation) {
    const auto found = frames_.find(operation);
    if (found != frames_.end()) return out_.recall(found->second);
    out_.begin_list();
    frames_[operation] = out_.memoize();
    out_.begin_items();
    if (operation == 0) put_frame("(no operation)");
    for (std::uint32_t node = operation; node != 0; node = at.operations()[node].parent)
      put_frame(at.names.text(at.operations()[node].name));
    out_.end_list_items();
  }
  void put_frame(std::string_view operation) {
    const auto [found, is_new] = frame_of_name_.try_emplace(std::string{operation}, 0);
    if (!is_new) return out_.recall(found->second);
    const snapshot_frame frame{operation};
    out_.begin_dictionary();
    found->second = out_.memoize();
    out_.begin_items();
    out_.name("name");
    out_.name(frame.name);
    out_.name("filename");
    out_.name(frame.file);
    out_.name("line");
    out_.integer(frame.line);
    out_.end_dictionary_items();
  }

  void write_segment(const replay_state& at, const segment_row& row) {
    std::uint64_t live = 0;
    std::uint64_t active = 0;
    for (const block_row& block : row.blocks) {
      if (block.state == block_state::active_allocated) live += block.bytes;
      if (block.state != block_state::inactive) active += block.bytes;
    }
    out_.begin_dictionary();
    out_.begin_items();
    const auto number = [&](std::string_view key, auto value) {
      out_.name(key);
      out_.integer(value);
    };
    number("device", std::int64_t{row.device});
    number("address", row.address);
    number("total_size", row.bytes);
    number("allocated_size", live);
    number("active_size", active);
    number("requested_size", active);
    number("stream", row.stream.stream);
    out_.name("segment_type");
    out_.name(row.bytes <= (std::uint64_t{2} << 20) ? "small" : "large");
    out_.name("segment_pool_id");
    out_.pair(row.stream.pool_first, row.stream.pool_second);
    out_.name("is_expandable");
    out_.boolean(false);
    out_.name("frames");
    out_.begin_list();
    out_.name("blocks");
    out_.list(row.blocks.size(), [&](std::size_t index) {
      const block_row& block = row.blocks[index];
      out_.begin_dictionary();
      out_.begin_items();
      number("address", block.address);
      number("size", block.bytes);
      const bool is_active = block.state != block_state::inactive;
      number("requested_size", is_active ? block.bytes : 0);
      out_.name("state");
      out_.name(state_name(block.state));
      out_.name("frames");
      if (is_active) {
        put_frames(at, block.operation);
      } else {
        out_.begin_list();
      }
      out_.end_dictionary_items();
    });
    out_.end_dictionary_items();
  }

  /// memory_viz shows these unchanged.
  void write_settings(const replay_state& at, const std::vector<int>& device_of, const std::vector<torch_snapshot_loss>& losses) {
    out_.name("allocator_settings");
    out_.begin_dictionary();
    out_.begin_items();
    out_.name("written_by");
    out_.text(std::string{"memprof "} + version_string);
    for (std::size_t space = 0; space < any_space; ++space) {
      if (device_of[space] < 0) continue;
      out_.text("device " + std::to_string(device_of[space]));
      out_.text(at.space_name(static_cast<std::uint8_t>(space)));
    }
    for (const torch_snapshot_loss& loss : losses) {
      if (loss.left_out_events == 0) continue;
      out_.text("left out of " + loss.space);
      out_.text(std::to_string(loss.left_out_events) + " events before and after a window around the peak");
    }
    out_.end_dictionary_items();
  }

  void write_annotations(const replay_state& at, const segment_list& steps, int last_device) {
    out_.name("external_annotations");
    const std::size_t devices = static_cast<std::size_t>(last_device) + 1;
    out_.list(2 * steps.rows.size() * devices, [&](std::size_t index) {
      // All devices enter a step before any leaves it: if it takes no time, readers must not see several.
      const std::size_t step = index / 2 / devices;
      const bool is_end = index / devices % 2 != 0;
      // Events in the last step's final microsecond belong to it.
      const bool is_last = is_end && step + 1 == steps.rows.size();
      const std::int64_t ns = is_end ? steps.rows[step].end_ns : step == 0 ? 0 : steps.rows[step - 1].end_ns;
      out_.begin_dictionary();
      out_.begin_items();
      out_.name("device");
      out_.integer(static_cast<std::int64_t>(index % devices));
      out_.name("time_us");
      out_.integer(at.info.begin_unix_ns / 1000 + ns / 1000 + (is_last ? 1 : 0));
      out_.name("name");
      out_.name(at.names.text(steps.rows[step].name));
      out_.name("stage");
      out_.name(is_end ? "END" : "START");
      out_.end_dictionary_items();
    });
  }

  pickle_writer out_;
  std::unordered_map<std::uint32_t, memo_id> frames_;
  std::unordered_map<std::string, memo_id> frame_of_name_;
  snapshot_streams streams_;
};

}  // namespace
}  // namespace detail

std::vector<torch_snapshot_loss> write_torch_snapshot(trace_source_view source, byte_sink_view out,
                                                      const torch_snapshot_options& options) {
  return detail::torch_snapshot_writer{out}.write(source, options);
}

std::vector<std::string> torch_snapshot_losses(const profile& run) {
  std::vector<std::string> lost;
  if (run.checkpoint_count != 0)
    lost.push_back(std::to_string(run.checkpoint_count) + (run.checkpoint_count == 1 ? " checkpoint" : " checkpoints"));
  const auto is_described = [](const live_block& block) {
    return !block.name.empty() || !block.shape.empty() || !block.dtype.empty();
  };
  if (detail::has_space(run, [&](const space_profile& space) {
        const auto& blocks = space.live_at_peak.largest_blocks;
        return std::any_of(blocks.begin(), blocks.end(), is_described);
      }))
    lost.emplace_back("names, shapes and types of blocks");
  detail::add_lost_facts(lost, run, {});
  return lost;
}

}  // namespace memprof::inline MEMPROF_ABI
