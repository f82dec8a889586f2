#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/heap.hpp>
#include <memprof/ledger/frame_parts.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_follower.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/range_deallocation.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/frame_bytes.hpp>
#include <memprof/trace/key_frame_collector.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// An allocation or a free.
struct allocation_step {
  std::uint64_t bytes;      ///< requested bytes; 0: a free
  std::uint64_t event;      ///< index among all events, from 0
  std::uint32_t block;      ///< number of the block; numbers of freed blocks are reused
  std::uint32_t operation;  ///< the innermost open on its thread: a node of `allocation_sequence::operations`
};

/// The allocations and frees of one memory space in order, without addresses: what an allocator model can replay as often as
/// needed. A fold over a trace that treats anomalies as the ledger does.
///
/// Takes 24 bytes of heap per step. Not synchronised.
class allocation_sequence {
 public:
  /// Selects the space by its number in the trace, or by name.
  explicit allocation_sequence(std::uint8_t space) : space_(space) {}
  explicit allocation_sequence(std::string_view space) : space_name_(space), space_(any_space) {}
  allocation_sequence(const allocation_sequence&) = delete;
  allocation_sequence& operator=(const allocation_sequence&) = delete;

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info&) noexcept {}
  void name(label id, std::string_view text) noexcept {
    if (id == names_.size() + 1) names_.append(text);
  }
  void space(const space_definition& space) noexcept {
    if (!space_name_.empty() && names_.text(space.name) == space_name_) space_ = space.id;
  }
  void facts(fact_part&&) noexcept {}

  /// Adds the events [first, last) of one thread, identified by `ring`, in order; those of other memory spaces are only counted.
  /// Raises an error if there is no memory for the table of live blocks.
  void events(const event* first, const event* last, std::uint32_t ring) {
    detail::followed_thread& on = thread_in(ring);
    for (const event* next = first; next != last; ++next, ++events_) {
      switch (next->kind) {
        case event_kind::allocate:
        case event_kind::allocate_on_stream:
          if (next->space == space_) allocate(*next, on);
          break;
        case event_kind::deallocate:
        case event_kind::deallocate_on_stream:
          if (next->space == space_) deallocate(next->address, on);
          break;
        case event_kind::deallocate_range:
          if (next->space == space_) deallocate_range(*next, on);
          break;
        case event_kind::scope_begin: (void)follower_.begin(on, *next, 0, no_usage); break;
        case event_kind::scope_end:
          follower_.end(on, *next, no_usage, [this](std::uint32_t number) { return thread_of_number(number); });
          break;
        case event_kind::gap: is_missing_events_ = true; break;
        case event_kind::thread_begin: follower_.begin_thread(on, next->address, detail::block::max_thread, no_usage); break;
        default: break;  // memory of single cores has no caching allocator
      }
    }
  }

  /// Continues from a key frame if events before it are missing: blocks that disappeared meanwhile are freed, and new ones are
  /// allocated in their original order. False if it is damaged.
  bool key_frame(const key_frame_part& part) {
    if ((!is_missing_events_ && events_ != 0) || !frame_.add(part)) return true;
    const bool is_sound = take_frame();
    frame_.clear();
    return is_sound;
  }

  [[nodiscard]] const std::vector<allocation_step>& steps() const noexcept { return steps_; }
  /// An upper bound of the block numbers: the maximum number of live blocks.
  [[nodiscard]] std::uint32_t block_count() const noexcept { return block_count_; }
  [[nodiscard]] const detail::operation_tree& operations() const noexcept { return follower_.operations(); }
  /// The names in the trace.
  [[nodiscard]] const label_table& names() const noexcept { return names_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Frees of blocks that no event had allocated; they have no steps.
  [[nodiscard]] std::uint64_t unmatched_frees() const noexcept { return unmatched_frees_; }
  /// Allocations at a live address; a step frees the older block first.
  [[nodiscard]] std::uint64_t replaced_allocations() const noexcept { return replaced_allocations_; }

 private:
  /// Instead of a number, for blocks of 0 bytes: as in PyTorch, they do not reach the allocator.
  static constexpr std::uint64_t no_block = ~std::uint64_t{0};

  static constexpr auto no_usage = [](std::uint32_t, const detail::open_scope&, std::uint8_t, const detail::scope_usage&) {};

  [[nodiscard]] detail::followed_thread& thread_in(std::uint32_t ring) {
    std::unique_ptr<detail::followed_thread>& thread = threads_[ring];
    if (thread == nullptr) thread = std::make_unique<detail::followed_thread>(ring);
    return *thread;
  }
  [[nodiscard]] detail::followed_thread* thread_of_number(std::uint32_t number) {
    for (const auto& [ring, thread] : threads_) {
      if (thread->thread == number) return thread.get();
    }
    return nullptr;
  }

  [[nodiscard]] bool take_frame() {
    using detail::frame_parts;
    using detail::frame_section;
    detail::frame_reader in{frame_.data(), frame_.size()};
    std::uint32_t revision = 0;
    in.number(revision);
    if (revision > detail::frame_revision) return true;
    follower_ = detail::operation_follower{};
    threads_.clear();
    in.section(frame_section::operations, [&] { frame_parts::operations(in, follower_); });
    detail::live_blocks found;
    while (!in.is_at_end() && !in.has_failed()) {
      switch (in.next_section()) {
        case frame_section::blocks: in.section(frame_section::blocks, [&] { take_blocks(in, found); }); break;
        case frame_section::threads: in.section(frame_section::threads, [&] { take_threads(in); }); break;
        default: in.skip_section(); break;
      }
    }
    if (in.has_failed()) return false;
    go_on_with(found);
    is_missing_events_ = false;
    return true;
  }

  void take_blocks(detail::frame_reader& in, detail::live_blocks& found) {
    std::uint8_t space = 0;
    in.number(space);
    std::uint64_t born = 0;
    detail::live_blocks of_others;
    detail::frame_parts::table_of_blocks(in, space == space_ ? found : of_others, [&](detail::block& held) {
      std::int64_t distance = 0;
      std::uint32_t thread = 0;
      std::uint32_t node = 0;
      std::uint32_t category = 0;
      label annotation = 0;
      in.amounts(held.bytes);
      in.numbers(distance, thread, node, category, annotation);
      in.require(node < follower_.operations().size());
      held.born_thread = born += static_cast<std::uint64_t>(distance);
      held.owner = node;
    });
  }

  void take_threads(detail::frame_reader& in) {
    std::size_t count = 0;
    in.number(count);
    for (; count != 0 && !in.has_failed(); --count) {
      std::uint32_t ring = 0;
      in.number(ring);
      if (in.has_failed()) return;
      detail::followed_thread& on = thread_in(ring);
      in.require(on.scopes.empty());
      in.numbers(on.thread, on.unfollowed_scopes);
      detail::frame_parts::open_operations(in, on.scopes, follower_.operations().size());
    }
  }

  void go_on_with(detail::live_blocks& found) {
    std::vector<detail::block> gone;
    live_.for_each([&](const detail::block& held) {
      const detail::live_blocks::place now = found.find(held.address);
      if (!now || now->bytes != held.bytes) gone.push_back(held);
    });
    for (const detail::block& held : gone) {
      free_block(held.owner, 0);
      live_.erase(live_.find(held.address));
    }
    std::vector<detail::block> come;
    found.for_each([&](const detail::block& held) {
      if (!live_.find(held.address)) come.push_back(held);
    });
    detail::sort_rows(come.data(), come.size(), [](const detail::block& left, const detail::block& right) {
      return left.born_thread != right.born_thread ? left.born_thread < right.born_thread : left.address < right.address;
    });
    for (const detail::block& held : come) {
      const detail::live_blocks::insertion made = live_.insert(held.address);
      if (made.entry == nullptr) detail::raise("allocation_sequence: out of memory for the table of live blocks");
      made.entry->bytes = held.bytes;
      made.entry->owner = held.bytes == 0 ? no_block : number_of_new_block();
      if (held.bytes != 0) add_step(held.bytes, made.entry->owner, held.operation());
    }
  }

  void allocate(const event& recorded, const detail::followed_thread& on) {
    const detail::live_blocks::insertion made = live_.insert(recorded.address);
    if (made.entry == nullptr) detail::raise("allocation_sequence: out of memory for the table of live blocks");
    std::uint64_t& block = made.entry->owner;
    if (!made.is_new) {
      ++replaced_allocations_;
      free_block(block, on.scopes.operation());
    }
    made.entry->bytes = recorded.bytes;
    block = recorded.bytes == 0 ? no_block : number_of_new_block();
    if (block != no_block) add_step(recorded.bytes, block, on.scopes.operation());
  }

  void deallocate(std::uint64_t address, const detail::followed_thread& on) {
    const detail::live_blocks::place found = live_.find(address);
    if (!found) {
      ++unmatched_frees_;
      return;
    }
    free_block(found->owner, on.scopes.operation());
    live_.erase(found);
  }

  /// Frees in the order of addresses.
  void deallocate_range(const event& recorded, const detail::followed_thread& on) {
    std::vector<std::uint64_t> addresses;
    live_.for_each([&](const detail::block& live) {
      if (detail::is_in_range(recorded, live.address)) addresses.push_back(live.address);
    });
    std::sort(addresses.begin(), addresses.end());
    for (const std::uint64_t address : addresses) deallocate(address, on);
  }

  void free_block(std::uint64_t block, std::uint32_t operation) {
    if (block == no_block) return;
    add_step(0, block, operation);
    unused_.push_back(static_cast<std::uint32_t>(block));
  }

  [[nodiscard]] std::uint32_t number_of_new_block() {
    if (unused_.empty()) return block_count_++;
    const std::uint32_t number = unused_.back();
    unused_.pop_back();
    return number;
  }

  void add_step(std::uint64_t bytes, std::uint64_t block, std::uint32_t operation) {
    steps_.push_back({bytes, events_, static_cast<std::uint32_t>(block), operation});
  }

  std::string space_name_;
  std::uint8_t space_;
  std::uint64_t events_ = 0;
  bool is_missing_events_ = false;  ///< events are missing since the last key frame
  detail::key_frame_collector frame_;
  std::uint64_t unmatched_frees_ = 0;
  std::uint64_t replaced_allocations_ = 0;
  std::uint32_t block_count_ = 0;
  std::vector<allocation_step> steps_;
  detail::live_blocks live_;           // `owner` is the block's number
  std::vector<std::uint32_t> unused_;  // numbers of freed blocks
  label_table names_;
  detail::operation_follower follower_;
  std::map<std::uint32_t, std::unique_ptr<detail::followed_thread>> threads_;  // by ring
};
static_assert(trace_visitor<allocation_sequence>);

}  // namespace memprof::inline MEMPROF_ABI
