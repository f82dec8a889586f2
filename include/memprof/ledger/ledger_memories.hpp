#pragma once

#include <memprof/detail/paged_object.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

/// @file
/// Memories that several spaces of a `ledger` share.

namespace memprof::inline MEMPROF_ABI::extend {

inline void ledger::activate(detail::space_ledger& space) noexcept {
  detail::memory_share& share = *space.shared();
  detail::shared_memory& memory = share.memory();
  if (memory.active == &space) return;
  if (memory.active != nullptr) memory.others += memory.active->live();
  memory.others -= space.live();
  memory.active = &space;
  memory.active_id = share.space();
  space.become_active();
}

inline void ledger::join_memory(std::uint8_t id, detail::space_ledger& space) noexcept {
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

inline detail::shared_memory* ledger::memory_of(std::uint8_t id) noexcept {
  detail::space_ledger& space = *spaces_[id];
  if (space.shared() != nullptr) return &space.shared()->memory();
  if (!memories_.reserve(memories_.size() + 1)) return nullptr;
  auto* const memory = detail::make_paged<detail::shared_memory>(settings_[id].memory);
  if (memory == nullptr) return nullptr;
  if (!share(*memory, id, space)) {
    detail::destroy_paged(memory);
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

inline bool ledger::share(detail::shared_memory& memory, std::uint8_t id, detail::space_ledger& space) noexcept {
  auto* const part = detail::make_paged<detail::memory_share>(&memory, id, options_.largest_blocks);
  if (part == nullptr) return false;
  if (!part->is_usable()) {
    detail::destroy_paged(part);
    return false;
  }
  part->begin_peak(0, 0, 0);
  space.share(part);
  return true;
}

inline void ledger::pin_joint_peaks() noexcept {
  for (detail::shared_memory* memory : memories_) {
    if (memory->sole_space != any_space || memory->peak == 0 || memory->peak_segment + 1 != history_.count()) continue;
    if (memory->is_pinned) history_.unpin(memory->pinned_segment);
    memory->is_pinned = true;
    memory->pinned_segment = memory->peak_segment;
    history_.pin(memory->peak_segment);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::extend
