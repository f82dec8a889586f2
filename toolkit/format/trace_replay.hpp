#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/ledger/allocator_event.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/toolkit/format/replay_handler.hpp>
#include <memprof/toolkit/format/thread_numbers.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Folds a trace by the rules of the ledger and hands single blocks, with operation, category and time, to a handler: the basis
/// of formats with more detail than a profile. Takes memory for what is live, for operations and names.
///
/// Times need the clock readings of the whole trace: see `clock_visitor`.
template <class Handler>
class trace_replay {
 public:
  trace_replay(Handler& handler, const extend::clock_readings& clock) : handler_(handler), clock_(clock) {}
  trace_replay(const trace_replay&) = delete;
  trace_replay& operator=(const trace_replay&) = delete;

  [[nodiscard]] const replay_state& state() const noexcept { return state_; }
  /// Calls `visit(const replayed_block&)` for each live block of a space, in no particular order.
  template <class Visitor>
  void for_each_live(std::uint8_t space, Visitor&& visit) const {
    if (spaces_[space] == nullptr) return;
    spaces_[space]->live.for_each([&](const detail::block& entry) { visit(spaces_[space]->slots[entry.owner]); });
  }

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const extend::capture_info& info) {
    state_.info = info;
    state_.visitor.infer_from(info.leading_thread);
  }
  void name(extend::label id, std::string_view text) {
    if (id == state_.names.size() + 1) state_.names.append(text);
  }
  void space(const extend::space_definition& space) { state_.space_names[space.id] = space.name; }
  void facts(extend::fact_part&&) {}
  void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
    detail::thread_scopes& on = thread_in(ring);
    for (const extend::event* next = first; next != last; ++next) {
      if (next->stamp > stamp_) {
        stamp_ = next->stamp;
        state_.now_ns = clock_.to_ns(stamp_);
      }
      apply(*next, on, ring);
    }
  }

 private:
  static constexpr auto no_usage = [](std::uint32_t, const detail::open_scope&, std::uint8_t, const detail::scope_usage&) {};

  struct space_blocks {
    detail::live_blocks live;  ///< `owner` is the index of the slot
    std::vector<replayed_block> slots;
    std::vector<std::uint32_t> unused;
    std::uint64_t ordinal = 0;
    std::uint64_t allocated = 0;
  };

  [[nodiscard]] detail::thread_scopes& thread_in(std::uint32_t ring) {
    std::unique_ptr<detail::thread_scopes>& thread = threads_[ring];
    if (thread == nullptr) {
      thread = std::make_unique<detail::thread_scopes>(ring);
      numbers_.add(ring, ring);
    }
    return *thread;
  }
  [[nodiscard]] space_blocks& blocks_of(std::uint8_t space) {
    if (spaces_[space] == nullptr) spaces_[space] = std::make_unique<space_blocks>();
    return *spaces_[space];
  }

  void apply(const extend::event& happened, detail::thread_scopes& on, std::uint32_t ring) {
    switch (happened.kind) {
      case extend::event_kind::allocate:
      case extend::event_kind::allocate_on_stream:
      case extend::event_kind::allocate_on_cores: allocate(happened, on); break;
      case extend::event_kind::deallocate:
      case extend::event_kind::deallocate_on_stream:
      case extend::event_kind::deallocate_on_cores: deallocate(happened, on); break;
      case extend::event_kind::deallocate_range: deallocate_range(happened, on); break;
      case extend::event_kind::deallocate_circular_buffers: deallocate_circular_buffers(happened, on); break;
      case extend::event_kind::annotate: annotate(happened); break;
      case extend::event_kind::use: use(happened, on.thread); break;
      case extend::event_kind::scope_begin:
        if (state_.visitor.begin(on, happened, happened.stamp, no_usage,
                                 [this](std::uint32_t number) { return thread_of_number(number); }))
          handler_.on_operations(state_, on.thread, on.scopes);
        break;
      case extend::event_kind::scope_end: end_scope(happened, on); break;
      case extend::event_kind::thread_begin: {
        const std::uint32_t before = on.thread;
        state_.visitor.begin_thread(on, happened, detail::block::max_thread, no_usage);
        handler_.on_operations(state_, on.thread, on.scopes);
        numbers_.change(before, on.thread, ring);
        handler_.on_thread(state_, on.thread, happened.label, happened.bytes);
        break;
      }
      case extend::event_kind::segment_end:
        handler_.on_segment_end(state_, happened.label);
        ++state_.segment;
        break;
      case extend::event_kind::checkpoint: handler_.on_checkpoint(state_, happened.label); break;
      case extend::event_kind::reserve:
      case extend::event_kind::release:
      case extend::event_kind::out_of_memory:
      case extend::event_kind::complete_deallocation:
        if (happened.space != extend::any_space) handler_.on_allocator_event(state_, happened, on.thread);
        break;
      default: break;
    }
  }

  void allocate(const extend::event& happened, const detail::thread_scopes& on) {
    if (happened.space == extend::any_space || happened.address == 0) return;
    const detail::scope_stack& source = state_.visitor.works_for(on).scopes;
    replayed_block made{happened.address, happened.bytes, 0, state_.now_ns, on.thread, source.operation()};
    made.space = happened.space;
    std::uint16_t tag = happened.tag;
    if (happened.kind == extend::event_kind::allocate_on_cores) {
      const extend::core_range cores = extend::core_range::unpacked(happened.label);
      tag &= 0xFFU;
      if (!cores.is_valid() || happened.tag >> 8U > static_cast<unsigned>(extend::buffer_kind::circular_buffer) ||
          __builtin_mul_overflow(happened.bytes, cores.count(), &made.bytes))
        return;
      made.is_on_cores = true;
      made.is_circular_buffer = happened.tag >> 8U != 0;
      made.cores = happened.label;
    } else if (happened.kind == extend::event_kind::allocate_on_stream) {
      made.stream = happened.label;
    } else {
      made.call_stack = happened.label;
    }
    made.category = static_cast<category>(detail::category_of(detail::is_category(tag) ? tag : source.tag()));
    space_blocks& blocks = blocks_of(happened.space);
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (made.bytes > most - blocks.allocated) return;
    blocks.allocated += made.bytes;
    if (blocks.live.find(happened.address)) remove(blocks, happened.address, on.thread);
    const detail::live_blocks::insertion entry = blocks.live.insert(happened.address);
    if (entry.entry == nullptr) detail::raise("trace_replay: out of memory for the table of live blocks");
    made.ordinal = ++blocks.ordinal;
    if (blocks.unused.empty()) {
      entry.entry->owner = blocks.slots.size();
      blocks.slots.push_back(made);
    } else {
      entry.entry->owner = blocks.unused.back();
      blocks.unused.pop_back();
      blocks.slots[entry.entry->owner] = made;
    }
    handler_.on_allocation(state_, made);
  }

  void deallocate(const extend::event& happened, const detail::thread_scopes& on) {
    if (happened.space == extend::any_space) return;
    const bool is_awaited = happened.kind == extend::event_kind::deallocate_on_stream && happened.tag != 0;
    if (remove(blocks_of(happened.space), happened.address, on.thread, is_awaited)) return;
    if (happened.address != 0) handler_.on_unmatched_free(state_, happened, on.thread);
  }

  bool remove(space_blocks& blocks, std::uint64_t address, std::uint32_t thread, bool is_awaited = false) {
    const detail::live_blocks::place found = blocks.live.find(address);
    if (!found) return false;
    const auto slot = static_cast<std::uint32_t>(found->owner);
    blocks.live.erase(found);
    blocks.unused.push_back(slot);
    blocks.slots[slot].is_awaited = is_awaited;
    handler_.on_deallocation(state_, blocks.slots[slot], thread);
    return true;
  }

  void deallocate_range(const extend::event& happened, const detail::thread_scopes& on) {
    if (happened.space == extend::any_space) return;
    space_blocks& blocks = blocks_of(happened.space);
    std::vector<std::uint64_t> addresses;
    blocks.live.for_each([&](const detail::block& entry) {
      if (detail::is_in_range(happened, entry.address)) addresses.push_back(entry.address);
    });
    for (const std::uint64_t address : addresses) remove(blocks, address, on.thread);
  }

  void deallocate_circular_buffers(const extend::event& happened, const detail::thread_scopes& on) {
    const extend::core_range cores = extend::core_range::unpacked(happened.label);
    if (happened.space == extend::any_space || !cores.is_valid()) return;
    space_blocks& blocks = blocks_of(happened.space);
    std::vector<std::uint64_t> ended;
    blocks.live.for_each([&](const detail::block& entry) {
      const replayed_block& live = blocks.slots[entry.owner];
      if (live.is_circular_buffer && extend::core_range::unpacked(live.cores).overlaps(cores)) ended.push_back(live.address);
    });
    for (const std::uint64_t address : ended) remove(blocks, address, on.thread);
  }

  void annotate(const extend::event& happened) {
    if (happened.tag > detail::category_names.size()) return;
    replayed_block* const named = find(happened);
    if (named == nullptr) return;
    const category before = named->category;
    if (happened.label != 0) named->annotation = happened.label;
    if (happened.tag != 0) named->category = static_cast<category>(happened.tag - 1U);
    handler_.on_annotation(state_, *named, before);
  }

  void use(const extend::event& happened, std::uint32_t thread) {
    if (const replayed_block* const used = find(happened); used != nullptr) {
      handler_.on_use(state_, *used, thread, happened.tag != 0);
    } else if (happened.address != 0) {
      handler_.on_unmatched_use(state_, happened);
    }
  }

  /// The live block that the event is about, in whichever space it is; null if there is none.
  [[nodiscard]] replayed_block* find(const extend::event& happened) {
    const std::size_t first = happened.space == extend::any_space ? 0 : happened.space;
    const std::size_t last = happened.space == extend::any_space ? extend::any_space : first + 1U;
    for (std::size_t space = first; space < last; ++space) {
      if (spaces_[space] == nullptr) continue;
      const detail::live_blocks::place found = spaces_[space]->live.find(happened.address);
      if (found) return &spaces_[space]->slots[found->owner];
    }
    return nullptr;
  }

  [[nodiscard]] detail::thread_scopes* thread_of_number(std::uint32_t number) {
    const std::uint32_t ring = numbers_.ring_of(number);
    return ring == detail::thread_numbers::no_ring ? nullptr : threads_.at(ring).get();
  }

  void end_scope(const extend::event& happened, detail::thread_scopes& on) {
    detail::thread_scopes* ended_on = &on;
    state_.visitor.end(on, happened, no_usage, [&](std::uint32_t number) {
      detail::thread_scopes* const named = thread_of_number(number);
      if (named != nullptr) ended_on = named;
      return named;
    });
    handler_.on_operations(state_, ended_on->thread, ended_on->scopes);
  }

  Handler& handler_;
  const extend::clock_readings& clock_;
  std::uint64_t stamp_ = 0;
  replay_state state_;
  std::unique_ptr<space_blocks> spaces_[extend::any_space + 1];
  std::unordered_map<std::uint32_t, std::unique_ptr<detail::thread_scopes>> threads_;  // by ring
  detail::thread_numbers numbers_;
};

/// Anything that can replay a trace to a visitor repeatedly: a `trace`, a `trace_file`.
template <class T>
concept trace_source = requires(const T& source, trace_replay<replay_handler>& visitor) {
  source.visit(visitor);
};

}  // namespace memprof::inline MEMPROF_ABI
