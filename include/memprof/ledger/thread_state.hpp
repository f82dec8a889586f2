#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// One thread of a ledger: its open operations, and what its next event most likely needs. The pointers are valid until a scope
/// begins or ends or the space's statistics move, so a run continues where the thread's last one stopped.
///
/// Blocks come and go on behalf of its innermost operation, in its current space, which the ledger sets. Stamps are passed by
/// reference, so that they are loaded only where needed: a copy costs an instruction at every event.
struct thread_state : thread_scopes {
  /// The current space of a run before its first event: differs from every event's space, including `any_space`.
  static constexpr std::uint32_t no_space = 256;
  static constexpr std::uint64_t no_generation = ~std::uint64_t{0};  ///< differs from every space's

  using thread_scopes::thread_scopes;

  /// False if the event must be rejected: the totals have no room for that many bytes.
  [[nodiscard, gnu::always_inline]] bool allocate(const event& recorded, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    // A single test for both, because neither normally happens.
    if (static_cast<unsigned>(!account.has_room_for(recorded.bytes)) | static_cast<unsigned>(recorded.address == 0)) [[unlikely]]
      return reject(recorded);
    live_blocks::insertion made = account.insert(recorded.address);
    if (!made.is_new) [[unlikely]] {
      if (made.entry == nullptr) {
        account.untracked_allocations.add(recorded.bytes);
        return true;
      }
      account.replaced_allocations.add(made.entry->bytes);
      if (const live_blocks::place replaced = account.find(recorded.address)) release(replaced);
      made = account.insert(recorded.address);
    }
    const std::uint64_t owned_by = is_category(recorded.tag) ? with_category(recorded.tag) : owner;
    account.add(made.entry, recorded, *stats, owned_by, thread, stamp);
    const auto bytes = static_cast<std::int64_t>(recorded.bytes);
    stats->allocated += bytes;
    ++stats->allocation_count;
    usage->allocate(bytes);
    return true;
  }

  [[gnu::always_inline]] void deallocate(const event& recorded, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    const live_blocks::place entry = account.find(recorded.address);
    if (!entry) [[unlikely]] {
      if (recorded.address != 0) account.unmatched_frees.add(recorded.bytes);  // freeing a null pointer does nothing
      account.mark_event(stamp);
      return;
    }
    if (recorded.bytes != 0 && recorded.bytes != entry->bytes) [[unlikely]] {
      account.mismatched_sizes.add(recorded.bytes > entry->bytes ? recorded.bytes - entry->bytes : entry->bytes - recorded.bytes);
    }
    take_away(entry);
    account.mark_event(stamp);
  }

  /// Frees a live block. The caller updates the timeline.
  [[gnu::always_inline]] void take_away(const live_blocks::place& entry) noexcept {
    if (entry->thread() != thread) space->cross_thread_frees.add(entry->bytes);
    release(entry);
  }

  [[nodiscard]] std::uint64_t with_category(std::uint16_t tag) const noexcept {
    return block::owner_word(static_cast<std::uint32_t>(owner), category_of(tag), 0);
  }

  std::uint32_t space_id = no_space;
  space_ledger* space = nullptr;
  std::uint64_t stats_generation = 0;
  bool prefetches = false;
  operation_stats* stats = nullptr;
  scope_usage* usage = nullptr;
  scope_usage window{};            ///< usage not yet added to the operations, while other threads may change theirs too
  std::int64_t inferred_from = 0;  ///< what the inferred operation had allocated when the window was opened
  std::uint64_t owner = 0;         ///< `block::owner_word` for the innermost operation and its category

 private:
  /// Handles an impossible allocation. One at a null address has failed, and is only counted.
  [[gnu::cold, gnu::noinline]] bool reject(const event& recorded) noexcept {
    if (recorded.address != 0) return false;
    space->null_allocations.add(recorded.bytes);
    return true;
  }

  [[gnu::always_inline]] void release(const live_blocks::place& entry) noexcept {
    const auto bytes = static_cast<std::int64_t>(entry->bytes);
    space->remove(entry);
    stats->freed += bytes;
    ++stats->deallocation_count;
    usage->deallocate(bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
