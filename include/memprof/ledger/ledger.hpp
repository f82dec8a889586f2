#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/ledger/allocator_event.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/range_deallocation.hpp>
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
#include <memprof/trace/memory_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
template <class State, class Ledger>
class ledger_state;
}

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
        history_(options.full_segments, options.segment_names) {}
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger() { forget(); }

  /// Gives a memory space, or each of its cores, a capacity in bytes; 0: none. The first allocation that exceeds it is recorded,
  /// along with who held the rest, and events go on; a per-core capacity is compared only with blocks on cores. False, with
  /// nothing changed, if the space has already had events or the system has no memory.
  [[nodiscard]] bool limit(std::uint8_t space, std::int64_t capacity, bool is_per_core = false) noexcept {
    space_setting* const setting = setting_of(space);
    if (setting == nullptr) return false;
    setting->capacity = capacity;
    setting->is_per_core = is_per_core;
    return true;
  }

  /// Says which memory a space belongs to: `host_memory`, a name, or 0 for one of its own, the default. If two or more spaces
  /// share a memory, its joint peak is found too. False as for `limit`.
  [[nodiscard]] bool place(std::uint8_t space, label memory) noexcept {
    space_setting* const setting = setting_of(space);
    if (setting == nullptr) return false;
    setting->memory = memory;
    return true;
  }

  /// Bounds the time of events that cost more than a step: the ends of segments and of operations on other threads, blocks on
  /// many cores, reservations among many. Those beyond `steps` in total, plus 512 per event, are rejected.
  void limit_work(std::uint64_t steps) noexcept { work_limit_ = steps; }
  /// Whether any were rejected for that reason.
  [[nodiscard]] bool is_overworked() const noexcept { return is_overworked_; }

  /// Resets everything but the options, limits and memories.
  void forget() noexcept {
    for (detail::space_ledger* space : spaces_) {
      if (space != nullptr) destroy(space->shared());
    }
    for (detail::shared_memory* memory : memories_) destroy(memory);
    memories_.clear();
    for (detail::space_ledger*& space : spaces_) {
      destroy(space);
      space = nullptr;
    }
    for (detail::thread_state* thread : threads_) {
      if (thread != nullptr) thread->~thread_state();
    }
    for (std::byte* pages : thread_pages_) detail::unmap_pages(pages, thread_page_bytes);
    threads_.clear();
    thread_pages_.clear();
    thread_count_ = 0;
    changes_ = detail::space_changes{};
    space_end_ = 0;
    history_.~segment_history();
    new (&history_) detail::segment_history{options_.full_segments, options_.segment_names};
    checkpoints_ = detail::checkpoint_history{};
    operations_ = detail::operation_visitor{options_.operations};
    clock_ = clock_readings{begin_stamp_};
    stamp_ = segment_begin_ = 0;
    events_ = events_of_saved_state_ = rejected_events_ = dropped_events_ = reentrant_events_ = missing_events_ = other_names_ =
        0;
    are_more_missing_ = has_ended_ = is_missing_events_ = false;
  }

  /// Applies events [first, last) of one thread, identified by `ring`, in order. Constant time per event, except for `scope_end`
  /// and growing tables.
  void apply(const event* first, const event* last, std::uint32_t ring) noexcept {
    detail::thread_state* const state = find_thread(ring);
    events_ += static_cast<std::uint64_t>(last - first);
    if (state == nullptr) {
      rejected_events_ += static_cast<std::uint64_t>(last - first);
      return;
    }
    detail::thread_state& run = *state;
    if (run.space != nullptr) {
      resume(run);
      run.prefetches = run.space->is_large();
    }
    for (const event* recorded = first; recorded != last; ++recorded) {
      if (run.prefetches && last - recorded > prefetch_distance) {
        // The next events are nearly always in the same space; otherwise the guess only costs a cache line.
        run.space->prefetch(recorded[prefetch_distance].address);
      }
      apply_one(run, *recorded);
    }
  }

  /// Applies events of several threads, in order; the same as one call of the other for each.
  void apply(const ordered_event* first, const ordered_event* last) noexcept {
    events_ += static_cast<std::uint64_t>(last - first);
    for (const ordered_event* next = first; next != last; ++next) {
      detail::thread_state* const state = find_thread(next->ring);
      if (state == nullptr) [[unlikely]] {
        ++rejected_events_;
        continue;
      }
      detail::thread_state& run = *state;
      if (run.space != nullptr) {
        resume(run);
        // Whatever the size of the table: its last change was often made on another core.
        if (last - next > prefetch_distance) run.space->prefetch(next[prefetch_distance].recorded->address);
      }
      apply_one(run, *next->recorded);
    }
  }

  /// Ends the segment at `stamp`. Costs a pass over the operations of each space that has changed and the kept segments, but not
  /// over live blocks.
  void end_segment(label name, std::uint64_t stamp) noexcept {
    if (stamp > stamp_) stamp_ = stamp;
    if (name == memprof::other_names) ++other_names_;
    const std::uint32_t row = history_.prepare(name);
    if (row == detail::segment_history::no_row || !take_work(choose_ending_spaces(row))) {
      ++rejected_events_;
      return;
    }
    for (std::size_t index = 0; index < ending_count_; ++index) {
      if (!spaces_[ending_[index]]->settle(history_, segment_begin_)) ++rejected_events_;
    }
    (void)history_.add(name, segment_begin_, stamp_);  // there is room
    segment_begin_ = stamp_;
    for (std::size_t index = 0; index < ending_count_; ++index) {
      if (!spaces_[ending_[index]]->end_segment(history_, stamp_)) ++rejected_events_;
      changes_.end_segment(ending_[index], row);
    }
    pin_joint_peaks();
    history_.drop_surplus();
    if (history_.is_sparse()) history_.compact();
  }

  /// Counts what would otherwise wait: the peaks of open operations, and segments in which a space did not change. Call before
  /// reading the numbers of spaces. Idempotent.
  void settle() noexcept {
    settle_open_scopes();
    settle_spaces();
  }
  /// Only the segments.
  void settle_spaces() noexcept {
    for (detail::space_ledger* space : spaces_) {
      if (space != nullptr && !space->settle(history_, segment_begin_)) ++rejected_events_;
    }
  }

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
  /// Whether the capture's last event has been applied.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = sizeof(ledger) + operations_.bytes() + history_.bytes() + checkpoints_.bytes() + clock_.bytes() +
                        threads_.bytes() + settings_.bytes() + changes_.bytes();
    total += memories_.bytes() + memories_.size() * sizeof(detail::shared_memory);
    for (const detail::space_ledger* space : spaces_) {
      if (space == nullptr) continue;
      total += sizeof(detail::space_ledger) + space->bytes();
      if (space->shared() != nullptr) total += sizeof(detail::memory_share) + space->shared()->bytes();
    }
    total += thread_pages_.bytes() + thread_pages_.size() * thread_page_bytes;
    for (const detail::thread_state* thread : threads_) total += thread == nullptr ? 0 : thread->scopes.bytes();
    return total;
  }

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
  [[nodiscard]] space_setting* setting_of(std::uint8_t space) noexcept {
    if (spaces_[space] != nullptr) return nullptr;
    if (space >= settings_.size() && !settings_.resize(std::size_t{space} + 1)) return nullptr;
    return &settings_[space];
  }

  /// Continues with a thread, after others, that has a current space.
  [[gnu::always_inline]] void resume(detail::thread_state& run) noexcept {
    if (run.stats_generation != run.space->stats_generation()) run.space_id = detail::thread_state::no_space;
    if (run.space->shared() != nullptr) activate(*run.space);
  }

  [[gnu::always_inline]] void apply_one(detail::thread_state& run, const event& recorded) noexcept {
    // An event that was published late takes effect when it is applied, so time never runs backwards.
    if (recorded.stamp > stamp_) stamp_ = recorded.stamp;
    switch (recorded.kind) {
      case event_kind::allocate:
        if (enter(run, recorded.space) && !run.allocate(recorded, stamp_)) ++rejected_events_;
        break;
      case event_kind::deallocate:
        if (enter(run, recorded.space)) run.deallocate(recorded, stamp_);
        break;
      default:
        if (recorded.kind == event_kind::scope_begin) {
          begin_scope(run, recorded);
        } else if (recorded.kind == event_kind::scope_end) {
          end_scope(run, recorded);
        } else {
          apply_control(run, recorded);
        }
        break;
    }
  }

  /// Counts the peaks of open operations, which would otherwise wait for their end.
  void settle_open_scopes() noexcept {
    for (const detail::thread_state* thread : threads_) {
      if (thread == nullptr) continue;
      const detail::scope_stack& open = thread->scopes;
      open.for_each_space([&](std::uint8_t space, const detail::space_scopes& scopes) {
        std::int64_t inner_max = 0;
        for (std::size_t depth = open.depth(); depth > 0; --depth) {
          inner_max = scopes[depth].max_with(inner_max);
          detail::operation_stats* const stats = spaces_[space]->find_or_make_operation(open[depth - 1].operation);
          if (stats != nullptr) {
            stats->note_peak(inner_max, scopes[depth].self_max);
          } else {
            ++rejected_events_;
          }
        }
      });
    }
  }

  /// Makes a memory space the run's current one. False, and the event counts as rejected, if there is no memory for a new one.
  [[nodiscard, gnu::always_inline]] bool enter(detail::thread_state& run, std::uint8_t space) noexcept {
    if (run.space_id == space) [[likely]]
      return true;
    return enter_other(run, space);
  }

  [[gnu::noinline]] bool enter_other(detail::thread_state& run, std::uint8_t id) noexcept {
    detail::space_ledger* const space = spaces_[id] != nullptr || id == any_space ? spaces_[id] : make_space(id);
    detail::scope_usage* usage = nullptr;
    const bool may_change = space != nullptr && begin_change(id);
    if (may_change && run.scopes.empty()) {
      usage = &space->outside_operations();
    } else if (may_change) {
      if (detail::space_scopes* const scopes = run.scopes.in_space(id)) usage = &scopes->back();
    }
    detail::operation_stats* const stats = usage == nullptr ? nullptr : space->find_or_make_operation(run.scopes.operation());
    if (stats == nullptr) {
      ++rejected_events_;
      return false;
    }
    if (space->shared() != nullptr) activate(*space);
    run.space_id = id;
    run.space = space;
    run.prefetches = space->is_large();
    run.usage = usage;
    run.owner = detail::block::owner_word(run.scopes.operation(), detail::category_of(run.scopes.tag()), 0);
    run.stats = stats;
    run.stats_generation = space->stats_generation();
    return true;
  }

  [[gnu::noinline]] void apply_control(detail::thread_state& run, const event& recorded) noexcept {
    switch (recorded.kind) {
      case event_kind::annotate:
        if (recorded.label == memprof::other_names) ++other_names_;
        if (recorded.tag > category_names.size()) {
          ++rejected_events_;
        } else if (const std::uint8_t id = recorded.space == any_space ? space_of(recorded.address) : recorded.space;
                   spaces_[id] != nullptr && begin_change(id)) {
          spaces_[id]->annotate(recorded);
        } else {
          ++rejected_events_;
        }
        break;
      case event_kind::thread_begin:
        run.space_id = detail::thread_state::no_space;
        // Threads beyond the greatest number are merged into one; that takes a million threads.
        operations_.begin_thread(run, recorded.address, detail::block::max_thread, finish_operation{*this});
        break;
      default: apply_rare(run, recorded); break;  // separate, because a larger switch would cost the common events instructions
    }
  }

  [[gnu::noinline]] void apply_rare(detail::thread_state& run, const event& recorded) noexcept {
    if (recorded.kind == event_kind::deallocate_range) {
      if (enter(run, recorded.space) && !deallocate_range(run, recorded, stamp_)) ++rejected_events_;
      return;
    }
    if (detail::is_allocator_event(recorded.kind)) {
      if (enter(run, recorded.space) && (!take_work(detail::steps_of_allocator_event(*run.space, recorded)) ||
                                         !detail::apply_allocator_event(run, recorded, stamp_))) {
        ++rejected_events_;
      }
      return;
    }
    if (recorded.kind >= event_kind::segment_end) {
      run.space_id = detail::thread_state::no_space;
      return apply_to_capture(recorded);
    }
    const detail::per_core_event change{recorded};
    if (!change.is_possible() || !take_work(change.steps(spaces_[recorded.space]))) {
      ++rejected_events_;
    } else if (enter(run, recorded.space) && !change.apply(run, stamp_)) {
      ++rejected_events_;
    }
  }

  /// Applies events of the capture itself, whichever thread they are on.
  void apply_to_capture(const event& recorded) noexcept {
    switch (recorded.kind) {
      case event_kind::segment_end: end_segment(recorded.label, stamp_); break;
      case event_kind::clock_reading: clock_.add(recorded.stamp, static_cast<std::int64_t>(recorded.address)); break;
      case event_kind::lost_events:
        dropped_events_ = recorded.address;
        reentrant_events_ = recorded.bytes;
        are_more_missing_ = recorded.tag != 0;
        break;
      case event_kind::capture_end: has_ended_ = true; break;
      case event_kind::gap:
        if (__builtin_add_overflow(missing_events_, recorded.bytes, &missing_events_)) missing_events_ = UINT64_MAX;
        is_missing_events_ = true;
        break;
      case event_kind::checkpoint: add_checkpoint(recorded.label); break;
      default: ++rejected_events_; break;
    }
  }

  /// Keeps what is live now. Costs a pass over the live blocks.
  void add_checkpoint(label name) noexcept {
    constexpr std::size_t blocks_a_step = 8;
    if (name == memprof::other_names) ++other_names_;
    std::size_t blocks = 0;
    for (const detail::space_ledger* space : spaces_) blocks += space == nullptr ? 0 : space->blocks().size();
    if (!take_work(blocks / blocks_a_step) || !checkpoints_.begin(name, stamp_)) {
      ++rejected_events_;
      return;
    }
    for (std::uint8_t id = 0; id < max_spaces; ++id) {
      const detail::space_ledger* const space = spaces_[id];
      if (space == nullptr || checkpoints_.add(id, space->blocks(), space->live(), options_.largest_blocks)) continue;
      checkpoints_.abandon();
      ++rejected_events_;
      return;
    }
  }

  [[gnu::noinline]] void begin_scope(detail::thread_state& run, const event& recorded) noexcept {
    run.space_id = detail::thread_state::no_space;
    if (recorded.label == memprof::other_names) [[unlikely]]
      ++other_names_;
    if (!operations_.begin(run, recorded, stamp_, finish_operation{*this})) ++rejected_events_;
  }

  [[gnu::noinline]] void end_scope(detail::thread_state& run, const event& recorded) noexcept {
    run.space_id = detail::thread_state::no_space;
    operations_.end(run, recorded, finish_operation{*this},
                    [this](std::uint32_t number) { return turn_thread_of_number(number); });
  }

  /// The thread with that number, made to look up its current space again.
  [[nodiscard]] detail::thread_state* turn_thread_of_number(std::uint32_t number) noexcept {
    if (!take_work(8 * threads_.size())) return nullptr;
    for (detail::thread_state* thread : threads_) {
      if (thread == nullptr || thread->thread != number) continue;
      thread->space_id = detail::thread_state::no_space;
      return thread;
    }
    return nullptr;
  }

  [[nodiscard]] bool take_work(std::uint64_t steps) noexcept {
    constexpr std::uint64_t for_each_event = 512;
    if (work_limit_ == unlimited_work) return true;
    if (work_done_ + steps > work_limit_ + for_each_event * (events_ - events_of_saved_state_)) {
      is_overworked_ = true;
      return false;
    }
    work_done_ += steps;
    return true;
  }
  /// Sets `ending_` to the spaces in which a segment of that name must end now, and returns the steps that this costs. In the
  /// others, it is as the last one of that name was, and is added by `space_ledger::settle`.
  [[nodiscard]] std::uint64_t choose_ending_spaces(std::uint32_t row) noexcept {
    constexpr std::uint64_t each_space = 128;
    std::uint64_t steps = 0;
    ending_count_ = 0;
    for (std::size_t id = 0; id < space_end_; ++id) {
      if (spaces_[id] == nullptr || changes_.may_skip(id, row)) continue;
      ending_[ending_count_++] = static_cast<std::uint8_t>(id);
      const detail::space_ledger& space = *spaces_[id];
      steps += each_space + space.operation_count() + space.cores().grid_size() + space.steps_of_settling(history_);
    }
    return steps;
  }

  /// Prepares a space for a change. False if the system has no memory, or the work is too much.
  [[nodiscard]] bool begin_change(std::uint8_t id) noexcept {
    if (changes_.has_changed(id)) return true;
    detail::space_ledger& space = *spaces_[id];
    if (!take_work(space.steps_of_settling(history_)) || !space.settle(history_, segment_begin_)) return false;
    changes_.begin(id);
    return true;
  }

  [[nodiscard]] detail::thread_state* find_thread(std::uint32_t ring) noexcept {
    if (ring < threads_.size() && threads_[ring] != nullptr) [[likely]]
      return threads_[ring];
    if (ring > detail::block::max_thread || (ring >= threads_.size() && !threads_.resize(ring + 1))) return nullptr;
    return threads_[ring] = make_thread(ring);
  }

  /// Threads are many and small, so they share pages. Null if the system has no memory for it.
  [[nodiscard]] detail::thread_state* make_thread(std::uint32_t ring) noexcept {
    const std::size_t place = thread_count_ % threads_a_page;
    if (place == 0) {
      if (!thread_pages_.reserve(thread_pages_.size() + 1)) return nullptr;
      void* const pages = detail::map_pages(thread_page_bytes);
      if (pages == nullptr) return nullptr;
      (void)thread_pages_.push_back(static_cast<std::byte*>(pages));
    }
    ++thread_count_;
    return new (thread_pages_.back() + place * sizeof(detail::thread_state)) detail::thread_state{ring};
  }

  /// The id of the space with a live block at `address`; otherwise of the first space, which will count the miss, or `cpu` if no
  /// space has had an event. `any_space` if the system has no memory for it.
  [[nodiscard]] std::uint8_t space_of(std::uint64_t address) noexcept {
    std::uint8_t first = any_space;
    for (std::size_t id = 0; id < space_end_; ++id) {
      if (spaces_[id] == nullptr) continue;
      if (spaces_[id]->find(address)) return static_cast<std::uint8_t>(id);
      if (first == any_space) first = static_cast<std::uint8_t>(id);
    }
    if (first != any_space) return first;
    return make_space(cpu_space) == nullptr ? any_space : cpu_space;
  }

  [[nodiscard]] detail::space_ledger* make_space(std::uint8_t id) noexcept {
    detail::space_ledger* const space = make<detail::space_ledger>(options_, history_, segment_begin_);
    if (space == nullptr) return nullptr;
    if (!space->is_usable()) {
      destroy(space);
      return nullptr;
    }
    spaces_[id] = space;
    space_end_ = std::max<std::size_t>(space_end_, id + 1U);
    changes_.begin(id);
    if (id < settings_.size()) {
      space->limit(settings_[id].capacity, settings_[id].is_per_core);
      if (settings_[id].memory != 0) join_memory(id, *space);
    }
    return space;
  }

  // --- memories shared by several spaces ----------------------------------------------------------------------------

  /// Makes a space the active one in its shared memory. Call before its events.
  void activate(detail::space_ledger& space) noexcept {
    detail::memory_share& share = *space.shared();
    detail::shared_memory& memory = share.memory();
    if (memory.active == &space) return;
    if (memory.active != nullptr) memory.others += memory.active->live();
    memory.others -= space.live();
    memory.active = &space;
    memory.active_id = share.space();
    space.become_active();
  }

  /// Adds a new space to its memory, which is shared from the second space on.
  void join_memory(std::uint8_t id, detail::space_ledger& space) noexcept {
    const label name = settings_[id].memory;
    for (std::size_t other = 0; other < settings_.size(); ++other) {
      if (other == id || settings_[other].memory != name || spaces_[other] == nullptr) continue;
      detail::shared_memory* const memory = memory_of(static_cast<std::uint8_t>(other));
      if (memory != nullptr && !share(*memory, id, space)) memory->is_known = false;
      if (memory != nullptr) return;
      settings_[id].memory = 0;  // without memory for it, the joint peak is not tracked
      return;
    }
  }

  /// The memory of a space that was alone in it until now; null if the system has no memory for the record.
  [[nodiscard]] detail::shared_memory* memory_of(std::uint8_t id) noexcept {
    detail::space_ledger& space = *spaces_[id];
    if (space.shared() != nullptr) return &space.shared()->memory();
    if (!memories_.reserve(memories_.size() + 1)) return nullptr;
    auto* const memory = make<detail::shared_memory>(settings_[id].memory);
    if (memory == nullptr) return nullptr;
    if (!share(*memory, id, space)) {
      destroy(memory);
      return nullptr;
    }
    memory->others = space.live();
    memory->peak = space.greatest_live();
    if (memory->peak != 0) memory->sole_space = id;
    (void)memories_.push_back(memory);
    // An order that does not depend on which memory was shared first: the host's, then by label.
    const auto rank = [](const detail::shared_memory* of) { return of->name == host_memory ? 0 : of->name; };
    for (std::size_t at = memories_.size() - 1; at > 0 && rank(memories_[at]) < rank(memories_[at - 1]); --at)
      std::swap(memories_[at], memories_[at - 1]);
    return memory;
  }

  [[nodiscard]] bool share(detail::shared_memory& memory, std::uint8_t id, detail::space_ledger& space) noexcept {
    auto* const part = make<detail::memory_share>(&memory, id, options_.largest_blocks);
    if (part == nullptr) return false;
    if (!part->is_usable()) {
      destroy(part);
      return false;
    }
    part->begin_peak(0, 0, 0);
    space.share(part);
    return true;
  }

  /// Keeps the segments with joint peaks. Call when a segment has just ended.
  void pin_joint_peaks() noexcept {
    for (detail::shared_memory* memory : memories_) {
      if (memory->sole_space != any_space || memory->peak == 0 || memory->peak_segment + 1 != history_.count()) continue;
      if (memory->is_pinned) history_.unpin(memory->pinned_segment);
      memory->is_pinned = true;
      memory->pinned_segment = memory->peak_segment;
      history_.pin(memory->peak_segment);
    }
  }

  template <class T, class... Arguments>
  [[nodiscard]] static T* make(const Arguments&... arguments) noexcept {
    void* const pages = detail::map_pages(sizeof(T));
    return pages == nullptr ? nullptr : new (pages) T(arguments...);
  }

  template <class T>
  static void destroy(T* object) noexcept {
    if (object == nullptr) return;
    object->~T();
    detail::unmap_pages(object, sizeof(T));
  }

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
  detail::page_array<space_setting> settings_;  ///< by space. Empty unless `limit` or `place` was called
  detail::page_array<detail::shared_memory*> memories_;
};

}  // namespace memprof::inline MEMPROF_ABI
