#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// A point in a trace: the number of events before it, and the clock of the stamps.
struct moment {
  std::uint64_t event = 0;
  std::uint64_t stamp = 0;
};

/// A live block, with what the ledger does not keep: when it began.
struct page_block {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  moment born;
  std::uint32_t operation = 0;  ///< node of the ledger's tree
  std::uint32_t category = 0;
  label annotation = 0;
  std::uint32_t marks = 0;  ///< for use by the listener

  /// Operation and category in one number; all blocks together use a compact range.
  [[nodiscard]] std::size_t owner_key() const noexcept { return std::size_t{operation} * category_names.size() + category; }
};

/// Whether an event changes what an allocator holds or streams use, but no block.
[[nodiscard]] constexpr bool changes_allocator(event_kind kind) noexcept {
  return kind == event_kind::reserve || kind == event_kind::release || kind == event_kind::complete_deallocation;
}

/// Passes events to a ledger one by one and reports what each did to blocks. The rules stay the ledger's: this class looks at
/// what became of the address or, for an event about many blocks, at which have disappeared.
class block_visitor {
 public:
  /// Applies an event that happens at `now`. Calls `listener.began(space, block)`, `ended(space, block)` and `relabelled(space,
  /// before, after)`, where `space` is an id; the listener may mark blocks.
  template <class Listener>
  void apply(ledger& events, const memprof::extend::event& happened, std::uint32_t ring, const moment& now, Listener& listener) {
    switch (happened.kind) {
      case event_kind::allocate:
      case event_kind::allocate_on_cores:
      case event_kind::allocate_on_stream: {
        const std::uint64_t count = allocations_in(events, happened.space);
        events.apply(&happened, &happened + 1, ring);
        if (allocations_in(events, happened.space) == count) return;
        end(happened.space, happened.address, listener);  // frees a block still at that address
        begin(*events.space(happened.space), happened, now, listener);
        break;
      }
      case event_kind::deallocate:
      case event_kind::deallocate_on_cores:
      case event_kind::deallocate_on_stream: {
        events.apply(&happened, &happened + 1, ring);
        const space_ledger* const space = events.space(happened.space);
        if (space != nullptr && space->blocks().size() != live_in(happened.space))
          end(happened.space, happened.address, listener);
        break;
      }
      case event_kind::annotate:
        events.apply(&happened, &happened + 1, ring);
        for (const std::size_t id : used_) {
          if (happened.space == any_space || happened.space == id) relabel(events, id, happened.address, listener);
        }
        return;
      default:
        events.apply(&happened, &happened + 1, ring);
        if (!may_end_several(happened.kind)) return;
        break;
    }
    for (const std::size_t id : used_) {
      if (happened.space == any_space || happened.space == id) compare(events, id, listener);
    }
  }

  /// Calls `visit(block)` for each live block of a space, in no particular order.
  template <class Visitor>
  void for_each(std::size_t space, Visitor&& visit) {
    if (spaces_[space] == nullptr) return;
    spaces_[space]->slots.for_each([&](const block& entry) { visit(spaces_[space]->blocks[entry.bytes]); });
  }

 private:
  struct blocks_of_space {
    live_blocks slots;  ///< `bytes` is the index into `blocks`
    std::vector<page_block> blocks;
    std::vector<std::size_t> free;
  };

  /// Also true for kinds unknown to this class.
  [[nodiscard]] static bool may_end_several(event_kind kind) noexcept {
    return kind == event_kind::deallocate_circular_buffers || kind > event_kind::capture_end;
  }

  [[nodiscard]] static std::uint64_t allocations_in(const ledger& events, std::size_t id) noexcept {
    const space_ledger* const space = events.space(id);
    return space == nullptr ? 0 : space->allocation_count();
  }
  [[nodiscard]] std::size_t live_in(std::size_t id) const noexcept {
    return spaces_[id] == nullptr ? 0 : spaces_[id]->slots.size();
  }

  template <class Listener>
  void begin(const space_ledger& space, const memprof::extend::event& happened, const moment& now, Listener& listener) {
    const block* const found = space.blocks().at(happened.address);
    if (found == nullptr) return;
    if (spaces_[happened.space] == nullptr) {
      spaces_[happened.space] = std::make_unique<blocks_of_space>();
      used_.push_back(happened.space);
    }
    blocks_of_space& own = *spaces_[happened.space];
    block* const entry = own.slots.insert(happened.address).entry;
    if (entry == nullptr) raise("out of memory while following the blocks of a page");
    if (own.free.empty()) {
      own.free.push_back(own.blocks.size());
      own.blocks.emplace_back();
    }
    entry->bytes = own.free.back();
    own.free.pop_back();
    page_block& born = own.blocks[entry->bytes];
    born = {happened.address,
            static_cast<std::int64_t>(found->bytes),
            now,
            found->operation(),
            found->category(),
            found->annotation(),
            0};
    listener.began(happened.space, born);
  }

  template <class Listener>
  void end(std::size_t id, std::uint64_t address, Listener& listener) {
    if (spaces_[id] == nullptr) return;
    blocks_of_space& own = *spaces_[id];
    const live_blocks::place entry = own.slots.find(address);
    if (!entry) return;
    listener.ended(id, own.blocks[entry->bytes]);
    own.free.push_back(entry->bytes);
    own.slots.erase(entry);
  }

  template <class Listener>
  void relabel(const ledger& events, std::size_t id, std::uint64_t address, Listener& listener) {
    if (spaces_[id] == nullptr) return;
    const live_blocks::place entry = spaces_[id]->slots.find(address);
    const block* const found = events.space(id)->blocks().at(address);
    if (!entry || found == nullptr) return;
    page_block& known = spaces_[id]->blocks[entry->bytes];
    const page_block before = known;
    known.category = found->category();
    known.annotation = found->annotation();
    listener.relabelled(id, before, known);
  }

  /// Ends blocks that are no longer in the ledger. Visits all live blocks if any has disappeared.
  template <class Listener>
  void compare(const ledger& events, std::size_t id, Listener& listener) {
    const space_ledger* const space = events.space(id);
    if (space->blocks().size() == live_in(id)) return;
    std::vector<std::uint64_t> gone;
    spaces_[id]->slots.for_each([&](const block& entry) {
      if (space->blocks().at(entry.address) == nullptr) gone.push_back(entry.address);
    });
    for (const std::uint64_t address : gone) end(id, address, listener);
  }

  std::array<std::unique_ptr<blocks_of_space>, ledger::max_spaces + 1> spaces_;
  std::vector<std::size_t> used_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
