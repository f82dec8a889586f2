#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The number of changes of each space in a trace.
struct change_counter : clock_visitor {
  std::array<std::uint64_t, extend::any_space + 1> changes{};

  [[nodiscard]] static bool changes_bytes(extend::event_kind kind) noexcept {
    return detail::has_address(kind) && kind != extend::event_kind::annotate && kind != extend::event_kind::complete_deallocation;
  }
  void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
    clock_visitor::events(first, last, ring);
    for (const extend::event* next = first; next != last; ++next) {
      if (changes_bytes(next->kind)) ++changes[next->space];
    }
  }
};

/// Passes on the values of a counter: all of them, or the least, the greatest and the last of each stretch of `stretch` values.
class thinned_counter {
 public:
  template <class Emit>
  void add(std::int64_t ns, const timeline_counters& value, std::uint64_t stretch, Emit&& emit) {
    const point now{ns, count_++, value};
    if (stretch <= 1) return emit(ns, value);
    if (in_stretch_++ == 0 || value.live > greatest_.value.live) greatest_ = now;
    if (in_stretch_ == 1 || value.live < least_.value.live) least_ = now;
    last_ = now;
    if (in_stretch_ == stretch) flush(emit);
  }
  template <class Emit>
  void flush(Emit&& emit) {
    if (in_stretch_ == 0) return;
    in_stretch_ = 0;
    const bool is_greatest_first = greatest_.number <= least_.number;
    const point& first = is_greatest_first ? greatest_ : least_;
    const point& second = is_greatest_first ? least_ : greatest_;
    emit(first.ns, first.value);
    if (second.number != first.number) emit(second.ns, second.value);
    if (last_.number != second.number) emit(last_.ns, last_.value);
  }

 private:
  struct point {
    std::int64_t ns = 0;
    std::uint64_t number = 0;
    timeline_counters value;
  };
  std::uint64_t count_ = 0;
  std::uint64_t in_stretch_ = 0;
  point greatest_;
  point least_;
  point last_;
};

/// Turns a trace into calls of a sink.
class timeline_writer : public replay_handler {
 public:
  timeline_writer(timeline_sink& sink, const change_counter& counted, const timeline_limits& limits) : sink_(sink) {
    std::uint64_t all = 0;
    for (std::size_t space = 0; space < extend::any_space; ++space) {
      all += counted.changes[space];
      spaces_[space].stretch = counted.changes[space] / std::max<std::size_t>(limits.points / 3, 1) + 1;
      if (counted.changes[space] <= limits.points) spaces_[space].stretch = 1;
      losses_.events_per_stretch = std::max(losses_.events_per_stretch, spaces_[space].stretch);
    }
    has_memory_events_ = all <= limits.memory_events;
    if (!has_memory_events_) losses_.memory_events = all;
  }

  void on_allocation(const replay_state& at, const replayed_block& block) { change(at, block, 1, block.thread); }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t thread) {
    change(at, block, -1, thread);
  }
  void on_annotation(const replay_state& at, const replayed_block& block, category before) {
    space_state& space = spaces_[block.space];
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    space.now.by_category[static_cast<std::size_t>(before)] -= bytes;
    space.now.by_category[static_cast<std::size_t>(block.category)] += bytes;
    if (before == block.category) return;
    space.now.has_categories = true;
    put(at, block.space);
  }
  void on_operations(const replay_state& at, std::uint32_t thread, const detail::scope_stack& open) {
    std::vector<std::uint32_t>& known = open_[thread];
    std::size_t common = 0;
    while (common < known.size() && common < open.depth() && known[common] == open[common].number) ++common;
    for (; known.size() > common; known.pop_back()) sink_.end_operation(thread, at.now_ns);
    for (; known.size() < open.depth(); known.push_back(open[known.size()].number))
      sink_.begin_operation(thread, at.now_ns, at.names.text(open[known.size()].name));
  }
  void on_thread(const replay_state& at, std::uint32_t thread, extend::label name, std::uint64_t system_id) {
    std::string text{at.names.text(name)};
    if (text.empty()) text = "thread " + std::to_string(thread);
    if (system_id != 0) text += " (" + std::to_string(system_id) + ")";
    sink_.name_thread(thread, text);
  }
  void on_segment_end(const replay_state& at, extend::label name) {
    sink_.segment(at.names.text(name), segment_begin_ns_, at.now_ns);
    segment_begin_ns_ = at.now_ns;
  }
  void on_allocator_event(const replay_state& at, const extend::event& happened, std::uint32_t) {
    space_state& space = spaces_[happened.space];
    if (happened.kind == extend::event_kind::out_of_memory) {
      sink_.mark("out of memory: " + std::to_string(happened.bytes) + " bytes of " + std::string{at.space_name(happened.space)},
                 at.now_ns);
    } else if (happened.kind == extend::event_kind::reserve) {
      (void)space.reserved.reserve(happened.address, happened.bytes);
      space.now.reserved = space.reserved.current();
      put(at, happened.space);
    } else if (happened.kind == extend::event_kind::release) {
      (void)space.reserved.release(happened.address, happened.bytes);
      space.now.reserved = space.reserved.current();
      put(at, happened.space);
    }
  }

  /// Closes whatever is open and marks the peaks.
  void finish(const replay_state& at) {
    for (auto& [thread, known] : open_) {
      for (; !known.empty(); known.pop_back()) sink_.end_operation(thread, at.now_ns);
    }
    for (std::size_t index = 0; index < extend::any_space; ++index) {
      space_state& space = spaces_[index];
      const auto number = static_cast<std::uint8_t>(index);
      space.counter.flush(
          [&](std::int64_t ns, const timeline_counters& value) { sink_.count(number, at.space_name(number), ns, value); });
      if (space.peak == 0) continue;
      sink_.mark("peak of " + std::string{at.space_name(number)} + ": " + std::to_string(space.peak) + " bytes", space.peak_ns);
    }
    sink_.finish();
  }
  [[nodiscard]] const timeline_losses& losses() const noexcept { return losses_; }

 private:
  struct space_state {
    timeline_counters now;
    std::uint64_t stretch = 1;
    std::int64_t peak = 0;
    std::int64_t peak_ns = 0;
    thinned_counter counter;
    detail::reserved_ledger reserved;
  };

  void change(const replay_state& at, const replayed_block& block, std::int64_t sign, std::uint32_t thread) {
    space_state& space = spaces_[block.space];
    const std::int64_t bytes = sign * static_cast<std::int64_t>(block.bytes);
    space.now.live += bytes;
    space.now.by_category[static_cast<std::size_t>(block.category)] += bytes;
    if (block.category != category::other) space.now.has_categories = true;
    if (space.now.live > space.peak) {
      space.peak = space.now.live;
      space.peak_ns = at.now_ns;
    }
    put(at, block.space);
    if (has_memory_events_) {
      sink_.memory({at.now_ns, thread, at.space_name(block.space), block.address, bytes, space.now.live,
                    std::max<std::int64_t>(space.now.reserved, 0)});
    }
  }
  void put(const replay_state& at, std::uint8_t number) {
    space_state& space = spaces_[number];
    space.counter.add(at.now_ns, space.now, space.stretch, [&](std::int64_t ns, const timeline_counters& value) {
      sink_.count(number, at.space_name(number), ns, value);
    });
  }

  timeline_sink& sink_;
  timeline_losses losses_;
  bool has_memory_events_ = true;
  std::int64_t segment_begin_ns_ = 0;
  std::array<space_state, extend::any_space + 1> spaces_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> open_;  // operation numbers, by thread
};

}  // namespace

timeline_losses write_timeline(const trace_source_view& source, const process_info& process, timeline_sink& sink,
                               const timeline_limits& limits) {
  change_counter counted;
  source.visit(counted);
  timeline_writer writer{sink, counted, limits};
  trace_replay replay{writer, counted.clock};
  sink.begin(process);
  source.visit(replay);
  writer.finish(replay.state());
  return writer.losses();
}

void write_timeline(const profile& source, timeline_sink& sink) {
  sink.begin(source.process);
  for (const segment& each : source.segments) sink.segment(each.name, each.begin_ns, each.end_ns);
  std::uint32_t number = 0;
  for (const space_profile& space : source.spaces) {
    const vector<timeline_point>& points = space.timeline.points;
    for (std::size_t index = 0; index < points.size(); ++index) {
      const std::int64_t next = index + 1 < points.size() ? points[index + 1].time_ns : source.duration_ns;
      timeline_counters value;
      value.live = points[index].peak;
      sink.count(number, space.name, points[index].time_ns, value);
      if (points[index].current == points[index].peak) continue;
      value.live = points[index].current;
      sink.count(number, space.name, std::max(next - 1, points[index].time_ns), value);
    }
    ++number;
    if (space.cumulative_peak != 0)
      sink.mark("peak of " + space.name + ": " + std::to_string(space.cumulative_peak) + " bytes", space.peak_time_ns);
    for (const out_of_memory_failure& failure : space.out_of_memory)
      sink.mark("out of memory: " + std::to_string(failure.requested) + " bytes of " + space.name, failure.time_ns);
  }
  sink.finish();
}

}  // namespace memprof::inline MEMPROF_ABI
