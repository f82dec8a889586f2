#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/toolkit/format/pie/session_writer.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// The clock, and the number of ends of segments and checkpoints: what precedes the first snapshot.
struct session_survey : clock_visitor {
  std::uint64_t snapshots = 0;
  bool has_operations = false;

  void events(const event* first, const event* last, std::uint32_t ring) {
    clock_visitor::events(first, last, ring);
    for (; first != last; ++first) {
      snapshots += first->kind == event_kind::segment_end || first->kind == event_kind::checkpoint ? 1 : 0;
      has_operations = has_operations || first->kind == event_kind::scope_begin;
    }
  }
};

/// Collects the snapshots and calls of a trace in passing. Takes memory for what is live, and 64 bytes for each call.
class session_fold : public replay_handler {
 public:
  session_fold(const profile& run, session_writer& out) : begin_unix_ns_(run.begin_unix_ns), out_(out) {}

  void on_allocation(const replay_state&, const replayed_block& block) {
    space_state& space = spaces_[block.space];
    space.bytes += static_cast<std::int64_t>(block.bytes);
    space.live.emplace(key_of(block), block);
    now_.bytes += static_cast<std::int64_t>(block.bytes);
    ++now_.blocks;
    ++now_.allocated;
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
    space_state& space = spaces_[block.space];
    space.bytes -= static_cast<std::int64_t>(block.bytes);
    space.live.erase(key_of(block));
    keep_if_large(at, block);
    now_.bytes -= static_cast<std::int64_t>(block.bytes);
    --now_.blocks;
    ++now_.freed;
  }
  void on_annotation(const replay_state&, const replayed_block& block, category) {
    const auto found = spaces_[block.space].live.find(key_of(block));
    if (found != spaces_[block.space].live.end()) found->second = block;
  }

  void on_operations(const replay_state& at, std::uint32_t thread, const scope_stack& open) {
    std::vector<open_call>& known = open_[thread];
    std::size_t still_open = 0;
    for (std::size_t index = 0; index < known.size(); ++index) {
      const open_call call = known[index];
      if (still_open < open.depth() && open[still_open].number == call.number) {
        known[still_open++] = call;
      } else {
        end(at, call, thread);
      }
    }
    known.resize(still_open);
    for (; known.size() < open.depth();
         known.push_back({open[known.size()].number, open[known.size()].operation, at.now_ns, now_})) {
    }
  }

  void on_segment_end(const replay_state& at, label name) { put_snapshot(at, at.names.text(name)); }
  void on_checkpoint(const replay_state& at, label name) {
    put_snapshot(at, checkpoint_name(at.names.text(name), checkpoints_++));
  }

  /// Call at the end of the trace.
  void on_end(const replay_state& at) {
    for (const auto& [id, space] : spaces_) {
      for (const auto& [key, block] : space.live) keep_if_large(at, block);
    }
    for (const auto& [node, tensors] : largest_) {
      const auto called = operations_.find(std::string{name_of(at, node)});
      if (called == operations_.end()) continue;  // it has not ended
      for (const session_tensor& tensor : tensors) keep_if_larger(called->second.largest, tensor);
    }
  }

  /// The calls that have ended; `open_calls` counts those that have not.
  [[nodiscard]] const session_operations& operations() const noexcept { return operations_; }
  [[nodiscard]] std::size_t open_calls() const noexcept {
    std::size_t count = 0;
    for (const auto& [thread, calls] : open_) count += calls.size();
    return count;
  }

 private:
  void put_snapshot(const replay_state& at, std::string_view name) {
    std::vector<session_device> devices;
    for (const auto& [id, space] : spaces_) {
      const std::string_view device = at.space_name(id);
      session_device& part = devices.emplace_back();
      part.name = device;
      part.bytes = space.bytes;
      part.blocks = static_cast<std::int64_t>(space.live.size());
      for (auto next = space.live.begin(); next != space.live.end() && part.largest.size() < session_largest_blocks; ++next)
        part.largest.push_back(described(at, device, next->second));
    }
    out_.snapshot(begin_unix_ns_ + at.now_ns, name, devices);
  }

  struct totals {
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
    std::int64_t allocated = 0;
    std::int64_t freed = 0;
  };
  struct open_call {
    std::uint32_t number;
    std::uint32_t operation;
    std::int64_t begin_ns;
    totals before;
  };
  /// Orders blocks by size, the largest first, then by age.
  using block_key = std::pair<std::uint64_t, std::uint64_t>;
  struct space_state {
    std::int64_t bytes = 0;
    std::map<block_key, replayed_block> live;
  };

  [[nodiscard]] static block_key key_of(const replayed_block& block) noexcept { return {~block.bytes, block.ordinal}; }

  [[nodiscard]] static std::string_view name_of(const replay_state& at, std::uint32_t node) {
    const label name = at.operations()[node].name;
    return name == other_names ? other_operations_name : at.names.text(name);
  }

  [[nodiscard]] static session_tensor described(const replay_state& at, std::string_view device, const replayed_block& block) {
    const annotation_parts parts{at.names.text(block.annotation)};
    session_tensor tensor;
    tensor.bytes = static_cast<std::int64_t>(block.bytes);
    tensor.shape = parts.parts[1];
    tensor.dtype = parts.parts[2];
    tensor.device = device;
    if (block.operation != 0) tensor.operation = name_of(at, block.operation);
    tensor.requires_grad = requires_grad_from_string(parts.parts[3]);
    tensor.category = block.category;
    return tensor;
  }

  /// Offers a block, now fully known, to the operation that allocated it.
  void keep_if_large(const replay_state& at, const replayed_block& block) {
    if (block.operation == 0) return;
    keep_if_larger(largest_[block.operation], described(at, at.space_name(block.space), block));
  }

  void end(const replay_state& at, const open_call& call, std::uint32_t thread) {
    session_operation& ended = operations_[std::string{name_of(at, call.operation)}];
    ended.add({begin_unix_ns_ + at.now_ns, now_.bytes - call.before.bytes, now_.blocks - call.before.blocks, call.before.bytes,
               now_.allocated - call.before.allocated, now_.freed - call.before.freed, begin_unix_ns_ + call.begin_ns, thread});
    const std::uint32_t parent = at.operations()[call.operation].parent;
    if (parent != 0) operations_[std::string{name_of(at, parent)}].children.insert(std::string{name_of(at, call.operation)});
  }

  std::int64_t begin_unix_ns_;
  session_writer& out_;
  std::uint64_t checkpoints_ = 0;
  totals now_;
  std::map<std::uint8_t, space_state> spaces_;
  std::map<std::uint32_t, std::vector<open_call>> open_;  // by thread
  session_operations operations_;
  std::map<std::uint32_t, std::vector<session_tensor>> largest_;  // by operation
};

}  // namespace
}  // namespace detail

std::vector<std::string> write_session(trace_source_view source, const profile& run, byte_sink_view out) {
  detail::session_survey survey;
  source.visit(survey);
  detail::session_writer writer{out};
  writer.begin(run, survey.snapshots, survey.has_operations, {});
  detail::session_fold fold{run, writer};
  trace_replay replay{fold, survey.clock};
  source.visit(replay);
  fold.on_end(replay.state());
  writer.finish(fold.operations(), run);
  std::vector<std::string> missing;
  if (fold.open_calls() != 0)
    missing.push_back(std::to_string(fold.open_calls()) + " calls of operations still open at the end of the trace");
  return missing;
}

std::string session_text_of(const profile& run, const std::string& trace_file) {
  text_sink out;
  const detail::file_handle file{trace_file.empty() ? nullptr : std::fopen(trace_file.c_str(), "rbe")};
  if (file && is_trace_file(file.get())) {
    const memprof::trace_file events{file.get(), trace_file};
    (void)write_session(trace_source_view{events}, run, out);  // the file itself says what it lacks
  } else {
    (void)write_session(run, out);
  }
  return std::move(out.text);
}

}  // namespace memprof::inline MEMPROF_ABI
