#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memprof {

/// An allocation, or the end of one.
struct allocation_step {
  std::uint64_t bytes;      ///< that were asked for; 0: the block is freed
  std::uint64_t event;      ///< which of all events told it, from 0
  std::uint32_t block;      ///< its number; that of a freed block is given again
  std::uint32_t operation;  ///< the innermost open on its thread: a node of `allocation_sequence::operations`
};

/// The allocations and frees of one memory space in their order, without addresses: what a model of an allocator can replay as
/// often as it likes. A fold over events like the ledger, with the same view of what is unusual.
///
/// Takes 24 bytes of the heap for each step. Not synchronised.
class allocation_sequence {
 public:
  explicit allocation_sequence(std::uint8_t space) : space_(space) {}
  allocation_sequence(const allocation_sequence&) = delete;
  allocation_sequence& operator=(const allocation_sequence&) = delete;

  /// Adds events [first, last) of one thread, in order; those of other memory spaces are only counted. Raises an error if the
  /// system has no memory for the table of live blocks.
  void apply(const event* first, const event* last, std::uint32_t thread = 0) {
    std::vector<open_operation>& open = open_[thread];
    for (const event* told = first; told != last; ++told, ++events_) {
      switch (told->kind) {
        case event_kind::allocate:
        case event_kind::allocate_on_stream:
          if (told->space == space_) allocate(*told, open);
          break;
        case event_kind::deallocate:
        case event_kind::deallocate_on_stream:
          if (told->space == space_) deallocate(told->address, open);
          break;
        case event_kind::scope_begin: begin_operation(*told, open); break;
        case event_kind::scope_end: end_operation(*told, open); break;
        case event_kind::thread_begin: open.clear(); break;
        default: break;  // what lies on single cores has no caching allocator
      }
    }
  }

  [[nodiscard]] const std::vector<allocation_step>& steps() const noexcept { return steps_; }
  /// The numbers of blocks are below it: the greatest number that were live at once.
  [[nodiscard]] std::uint32_t block_count() const noexcept { return block_count_; }
  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Frees of blocks that no event had allocated; there is no step for them.
  [[nodiscard]] std::uint64_t unmatched_frees() const noexcept { return unmatched_frees_; }
  /// Allocations at a live address: a step before frees the older block.
  [[nodiscard]] std::uint64_t replaced_allocations() const noexcept { return replaced_allocations_; }

 private:
  /// In place of a number, for blocks of 0 bytes: as in PyTorch they do not reach the allocator.
  static constexpr std::uint64_t no_block = ~std::uint64_t{0};

  struct open_operation {
    std::uint32_t operation;
    label name;
    std::uint32_t depth;
  };

  void allocate(const event& told, const std::vector<open_operation>& open) {
    const live_blocks::insertion made = live_.insert(told.address);
    if (made.entry == nullptr) detail::raise("allocation_sequence: the system has no memory for the table of live blocks");
    std::uint64_t& block = made.entry->owner;
    if (!made.is_new) {
      ++replaced_allocations_;
      free_block(block, open);
    }
    made.entry->bytes = told.bytes;
    block = told.bytes == 0 ? no_block : number_of_new_block();
    if (block != no_block) add_step(told.bytes, block, open);
  }

  void deallocate(std::uint64_t address, const std::vector<open_operation>& open) {
    const live_blocks::place found = live_.find(address);
    if (!found) {
      ++unmatched_frees_;
      return;
    }
    free_block(found->owner, open);
    live_.erase(found);
  }

  void free_block(std::uint64_t block, const std::vector<open_operation>& open) {
    if (block == no_block) return;
    add_step(0, block, open);
    unused_.push_back(static_cast<std::uint32_t>(block));
  }

  [[nodiscard]] std::uint32_t number_of_new_block() {
    if (unused_.empty()) return block_count_++;
    const std::uint32_t number = unused_.back();
    unused_.pop_back();
    return number;
  }

  void add_step(std::uint64_t bytes, std::uint64_t block, const std::vector<open_operation>& open) {
    steps_.push_back({bytes, events_, static_cast<std::uint32_t>(block), innermost(open)});
  }

  [[nodiscard]] static std::uint32_t innermost(const std::vector<open_operation>& open) noexcept {
    return open.empty() ? 0 : open.back().operation;
  }

  void begin_operation(const event& told, std::vector<open_operation>& open) {
    const auto depth = static_cast<std::uint32_t>(told.address);
    end_from(depth, open);
    open.push_back({operations_.child(innermost(open), told.label), told.label, depth});
  }

  static void end_operation(const event& told, std::vector<open_operation>& open) {
    const auto depth = static_cast<std::uint32_t>(told.address);
    end_from(std::uint64_t{depth} + 1, open);
    if (!open.empty() && open.back().depth == depth && open.back().name == told.label) open.pop_back();
  }

  /// Depths heal what a dropped event tore: whatever is open at this depth or deeper has ended.
  static void end_from(std::uint64_t depth, std::vector<open_operation>& open) {
    while (!open.empty() && open.back().depth >= depth) open.pop_back();
  }

  std::uint8_t space_;
  std::uint64_t events_ = 0;
  std::uint64_t unmatched_frees_ = 0;
  std::uint64_t replaced_allocations_ = 0;
  std::uint32_t block_count_ = 0;
  std::vector<allocation_step> steps_;
  live_blocks live_;                   // `owner` is the block's number
  std::vector<std::uint32_t> unused_;  // numbers of freed blocks
  operation_tree operations_;
  std::unordered_map<std::uint32_t, std::vector<open_operation>> open_;  // by thread
};

}  // namespace memprof
