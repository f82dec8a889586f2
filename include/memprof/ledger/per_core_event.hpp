#pragma once

#include <memprof/ledger/core_ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// An event about blocks on cores, and what it does to a space.
///
/// In the space as a whole a block on cores is an ordinary one, as large as its parts together; `space_ledger::cores` has the
/// parts.
class per_core_event {
 public:
  explicit per_core_event(const event& recorded) noexcept
      : part_(recorded), whole_(recorded), cores_(core_range::unpacked(recorded.label)) {
    whole_.tag = recorded.tag & 0xFFU;
    is_possible_ = cores_.is_valid() && !__builtin_mul_overflow(recorded.bytes, cores_.count(), &whole_.bytes);
  }

  /// False if no such event can be: its kind, rectangle, kind of buffer or size.
  [[nodiscard]] bool is_possible() const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores:
        return is_possible_ && part_.address != 0 && part_.tag >> 8U <= static_cast<unsigned>(buffer_kind::circular_buffer);
      case event_kind::deallocate_on_cores: return is_possible_;
      case event_kind::deallocate_circular_buffers: return cores_.is_valid();
      default: return false;
    }
  }

  /// What applying a possible event costs; `space` may be null: it is not there yet.
  [[nodiscard]] std::uint64_t steps(const space_ledger* space) const noexcept {
    if (part_.kind == event_kind::allocate_on_cores) return cores_.count();
    if (space == nullptr) return 0;
    return part_.kind == event_kind::deallocate_on_cores ? space->cores().grid_size() : space->blocks().size();
  }

  /// Applies a possible event to the space to which the thread has been turned. False if it must be rejected: the totals have no
  /// room for so many bytes, or the system no memory.
  [[nodiscard]] bool apply(thread_state& run, std::uint64_t stamp) const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores: return allocate(run, stamp);
      case event_kind::deallocate_on_cores:
        run.space->cores().deallocate(part_.address);
        run.deallocate(whole_, stamp);
        break;
      default: deallocate_circular_buffers(run, stamp); break;
    }
    return true;
  }

 private:
  [[nodiscard]] bool allocate(thread_state& run, std::uint64_t stamp) const noexcept {
    space_ledger& space = *run.space;
    const std::uint64_t born_thread = (space.allocation_count() + 1) << block::thread_bits | run.thread;
    const auto kind = static_cast<buffer_kind>(part_.tag >> 8U);
    // Asked before, so that both accounts have the block or neither.
    if (!space.has_room_for(whole_.bytes) || !space.cores().allocate(part_.address, part_.bytes, cores_, kind, born_thread)) {
      return false;
    }
    (void)run.allocate(whole_, stamp);
    space.check_cores(part_.address, cores_, stamp);
    return true;
  }

  void deallocate_circular_buffers(thread_state& run, std::uint64_t stamp) const noexcept {
    for (const std::uint64_t address : run.space->cores().deallocate_circular_buffers(cores_)) {
      const live_blocks::place entry = run.space->find(address);
      if (entry) run.take_away(entry);  // else an event that no `event_sink` sends freed it as an ordinary block
    }
    run.space->mark_event(stamp);
  }

  event part_;   ///< as recorded: `bytes` on each core, the kind of buffer in `tag`
  event whole_;  ///< as the space sees it
  core_range cores_;
  bool is_possible_;
};

}  // namespace memprof::inline MEMPROF_ABI
