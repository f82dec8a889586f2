#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_changes.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
template <class State, class Ledger>
class ledger_state;
}

namespace extend {

/// A fold over events: the only place that knows what a peak is.
///
/// No threads, no clock, no I/O, no globals: the same events in the same order give the same result, live or replayed from a
/// file. Memory is bounded by live blocks, threads, and the numbers in `ledger_options`, never by the number of events, segments
/// or names. Not synchronised. It survives any input: impossible or unusual events are counted.
class ledger {
 public:
  static constexpr std::uint32_t max_spaces = any_space;

  explicit ledger(const ledger_options& options = {}, std::uint64_t begin_stamp = 0) noexcept
      : options_(options),
        begin_stamp_(begin_stamp),
        stamp_(begin_stamp),
        segment_begin_(begin_stamp),
        clock_(begin_stamp),
        operations_(options.operations),
        history_(options.full_segments, options.segment_names) {
    operations_.infer_from(options.leading_thread);
  }
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger() { forget(); }

  /// Gives a memory space, or each of its cores, a capacity in bytes; 0: none. The first allocation that exceeds it is recorded,
  /// along with who held the rest, and events go on; a per-core capacity is compared only with blocks on cores. False, with
  /// nothing changed, if the space has already had events or the system has no memory.
  [[nodiscard]] bool limit(std::uint8_t space, std::int64_t capacity, bool is_per_core = false) noexcept;

  /// Says which memory a space belongs to: `host_memory`, a name, or 0 for one of its own, the default. If two or more spaces
  /// share a memory, its joint peak is found too. False as for `limit`.
  [[nodiscard]] bool place(std::uint8_t space, label memory) noexcept;

  /// Bounds the time of events that cost more than a step: the ends of segments and of operations on other threads, and blocks on
  /// many cores. Those beyond `steps` in total, plus 512 per event, are rejected.
  void limit_work(std::uint64_t steps) noexcept { work_limit_ = steps; }
  /// Whether any were rejected for that reason.
  [[nodiscard]] bool is_overworked() const noexcept { return is_overworked_; }

  /// Resets everything but the options, limits and memories.
  void forget() noexcept;

  /// Applies events [first, last) of one thread, identified by `ring`, in order. Constant time per event, except for `scope_end`
  /// and growing tables.
  void apply(const event* first, const event* last, std::uint32_t ring) noexcept;

  /// Applies events of several threads, in order; the same as one call of the other for each.
  void apply(const detail::ordered_event* first, const detail::ordered_event* last) noexcept;

  /// Ends the segment at `stamp`. Costs a pass over the operations of each space that has changed and the kept segments, but not
  /// over live blocks.
  void end_segment(label name, std::uint64_t stamp) noexcept;

  /// Counts what would otherwise wait: the peaks of open operations, and segments in which a space did not change. Call before
  /// reading the numbers of spaces. Idempotent.
  void settle() noexcept {
    settle_open_scopes();
    settle_spaces();
  }
  /// Only the segments, and what threads did for operations that others work for, too.
  void settle_spaces() noexcept;

  [[nodiscard]] const detail::operation_tree& operations() const noexcept { return operations_.operations(); }
  /// The finished segments.
  [[nodiscard]] const detail::segment_history& segments() const noexcept { return history_; }
  [[nodiscard]] const detail::checkpoint_history& checkpoints() const noexcept { return checkpoints_; }
  /// The ledger of a memory space, or null if no event named it.
  [[nodiscard]] const detail::space_ledger* space(std::size_t id) const noexcept { return spaces_[id]; }
  /// The memories shared by more than one space: the host's first, the others in order of their labels.
  [[nodiscard]] const detail::page_array<detail::shared_memory*>& memories() const noexcept { return memories_; }
  [[nodiscard]] std::uint64_t begin_stamp() const noexcept { return begin_stamp_; }
  [[nodiscard]] std::uint64_t segment_begin() const noexcept { return segment_begin_; }
  /// Stamp of the last event that had one.
  [[nodiscard]] std::uint64_t last_stamp() const noexcept { return stamp_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t rejected_events() const noexcept { return rejected_events_; }
  [[nodiscard]] std::uint64_t unbalanced_scopes() const noexcept { return operations_.unbalanced(); }
  [[nodiscard]] std::uint64_t too_deep_scopes() const noexcept { return operations_.too_deep(); }
  /// Events with a name for which the process had no room.
  [[nodiscard]] std::uint64_t other_names() const noexcept { return other_names_; }
  /// Missing events by cause: dropped, from signal handlers that interrupted the profiler, and absent from the trace.
  [[nodiscard]] std::uint64_t dropped_events() const noexcept { return dropped_events_; }
  [[nodiscard]] std::uint64_t reentrant_events() const noexcept { return reentrant_events_; }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_events_; }
  /// Whether there are others, whose number is unknown.
  [[nodiscard]] bool are_more_missing() const noexcept { return are_more_missing_; }
  /// Whether events are missing since the last saved state, so that the next one has better data. Also true before the first
  /// event.
  [[nodiscard]] bool is_behind() const noexcept { return is_missing_events_ || events_ == 0; }
  /// Maps stamps to time.
  [[nodiscard]] const clock_readings& clock() const noexcept { return clock_; }
  /// The thread whose events a ring holds, with its open operations; null if it had no events.
  [[nodiscard]] const detail::thread_scopes* thread(std::size_t ring) const noexcept {
    return ring < threads_.size() ? threads_[ring] : nullptr;
  }
  /// What a thread of `thread` does now counts for these: see `operation_visitor::for_each_enclosing`, `works_for`.
  [[nodiscard]] const detail::operation_visitor& open_operations() const noexcept { return operations_; }
  /// Whether the capture's last event has been applied.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  template <class State, class Ledger>
  friend class detail::ledger_state;

  static constexpr std::uint64_t unlimited_work = ~std::uint64_t{0};
  /// Far enough for a cache miss to be over when the event is applied; near enough to help a short run.
  static constexpr std::ptrdiff_t prefetch_distance = 8;
  static constexpr std::size_t thread_page_bytes = 4096;
  static constexpr std::size_t threads_a_page = thread_page_bytes / sizeof(detail::thread_state);

  /// Records what an operation did in a space while it was open.
  struct finish_operation {
    ledger& owner;

    void operator()(std::uint32_t thread, const detail::open_scope& scope, std::uint8_t space,
                    const detail::scope_usage& usage) const noexcept {
      detail::operation_stats* const stats = owner.spaces_[space]->find_or_make_operation(scope.operation);
      if (stats == nullptr) [[unlikely]] {
        ++owner.rejected_events_;
        return;
      }
      stats->finish({scope.begin_stamp, owner.stamp_, usage.net(), usage.max_net, thread}, usage.self_max);
    }
  };

  /// Settings of a space before its first event.
  struct space_setting {
    std::int64_t capacity;  ///< 0: none
    bool is_per_core;
    label memory;  ///< 0: a memory of its own
  };

  /// Null if the space has already had events or the system has no memory.
  [[nodiscard]] space_setting* setting_of(std::uint8_t space) noexcept;

  /// Continues with a thread, after others, that has a current space.
  [[gnu::always_inline]] void resume(detail::thread_state& run) noexcept;

  [[gnu::always_inline]] void apply_one(detail::thread_state& run, const event& recorded) noexcept;

  /// Counts the peaks of open operations, which would otherwise wait for their end.
  void settle_open_scopes() noexcept;

  /// Makes a memory space the run's current one. False, and the event counts as rejected, if there is no memory for a new one.
  [[nodiscard, gnu::always_inline]] bool enter(detail::thread_state& run, std::uint8_t space) noexcept {
    if (run.space_id == space) [[likely]]
      return true;
    return enter_other(run, space);
  }

  bool enter_other(detail::thread_state& run, std::uint8_t id) noexcept;

  /// Adds the last thread's window to the operations that contain it. Call before any operation begins or ends.
  void settle_window() noexcept {
    if (windowed_ != nullptr) [[unlikely]]
      close_window();
  }
  void close_window() noexcept;

  void apply_control(detail::thread_state& run, const event& recorded) noexcept;

  void apply_rare(detail::thread_state& run, const event& recorded) noexcept;

  /// Applies events of the capture itself, whichever thread they are on.
  void apply_to_capture(const event& recorded) noexcept;

  /// Keeps what is live now. Costs a pass over the live blocks.
  void add_checkpoint(label name) noexcept;

  void begin_thread(detail::thread_state& run, const event& recorded) noexcept;

  void begin_scope(detail::thread_state& run, const event& recorded) noexcept;

  /// The same while a window is open, or for an operation that is adopted.
  void begin_shared_scope(detail::thread_state& run, const event& recorded) noexcept;

  void end_scope(detail::thread_state& run, const event& recorded) noexcept;

  /// The thread with that number, made to look up its current space again.
  [[nodiscard]] detail::thread_state* turn_thread_of_number(std::uint32_t number) noexcept;

  [[nodiscard]] bool take_work(std::uint64_t steps) noexcept;
  /// Sets `ending_` to the spaces in which a segment of that name must end now, and returns the steps that this costs. In the
  /// others, it is as the last one of that name was, and is added by `space_ledger::settle`.
  [[nodiscard]] std::uint64_t choose_ending_spaces(std::uint32_t row) noexcept;

  /// Prepares a space for a change. False if the system has no memory, or the work is too much.
  [[nodiscard]] bool begin_change(std::uint8_t id) noexcept;

  [[nodiscard]] detail::thread_state* find_thread(std::uint32_t ring) noexcept;

  /// Threads are many and small, so they share pages. Null if the system has no memory for it.
  [[nodiscard]] detail::thread_state* make_thread(std::uint32_t ring) noexcept;

  /// The id of the space with a live block at `address`; otherwise of the first space, which will count the miss, or `cpu` if no
  /// space has had an event. `any_space` if the system has no memory for it.
  [[nodiscard]] std::uint8_t space_of(std::uint64_t address) noexcept;

  [[nodiscard]] detail::space_ledger* make_space(std::uint8_t id) noexcept;

  // --- memories shared by several spaces ----------------------------------------------------------------------------

  /// Makes a space the active one in its shared memory. Call before its events.
  void activate(detail::space_ledger& space) noexcept;

  /// Adds a new space to its memory, which is shared from the second space on.
  void join_memory(std::uint8_t id, detail::space_ledger& space) noexcept;

  /// The memory of a space that was alone in it until now; null if the system has no memory for the record.
  [[nodiscard]] detail::shared_memory* memory_of(std::uint8_t id) noexcept;

  [[nodiscard]] bool share(detail::shared_memory& memory, std::uint8_t id, detail::space_ledger& space) noexcept;

  /// Keeps the segments with joint peaks. Call when a segment has just ended.
  void pin_joint_peaks() noexcept;

  ledger_options options_;
  std::uint64_t begin_stamp_;
  std::uint64_t stamp_;
  std::uint64_t segment_begin_;
  std::uint64_t events_ = 0;
  std::uint64_t rejected_events_ = 0;
  std::uint64_t dropped_events_ = 0;
  std::uint64_t reentrant_events_ = 0;
  std::uint64_t missing_events_ = 0;
  std::uint64_t other_names_ = 0;
  std::uint64_t work_limit_ = unlimited_work;
  std::uint64_t work_done_ = 0;
  std::uint64_t events_of_saved_state_ = 0;  ///< the part of `events_` before the saved state
  bool is_overworked_ = false;
  bool are_more_missing_ = false;
  bool has_ended_ = false;
  bool is_missing_events_ = false;
  clock_readings clock_;
  detail::space_ledger* spaces_[max_spaces + 1] = {};  // the last one stays null: `any_space`
  std::size_t space_end_ = 0;                          ///< the greatest id in use, plus one
  detail::space_changes changes_;
  std::uint8_t ending_[max_spaces] = {};  ///< the spaces in which the segment that ends now must end
  std::size_t ending_count_ = 0;
  detail::operation_visitor operations_;
  detail::segment_history history_;
  detail::checkpoint_history checkpoints_;
  detail::page_array<detail::thread_state*> threads_;  ///< by ring
  detail::page_array<std::byte*> thread_pages_;        ///< which hold them
  std::size_t thread_count_ = 0;
  detail::thread_state* windowed_ = nullptr;    ///< whose `window` has been opened
  std::uint8_t windowed_space_ = 0;             ///< and in which space
  detail::page_array<space_setting> settings_;  ///< by space. Empty unless `limit` or `place` was called
  detail::page_array<detail::shared_memory*> memories_;
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI

#include <memprof/ledger/ledger_events.hpp>
#include <memprof/ledger/ledger_memories.hpp>
#include <memprof/ledger/ledger_segments.hpp>
#include <memprof/ledger/ledger_storage.hpp>
