#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/paged_object.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_changes.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

/// @file
/// What a `ledger` makes at the first event of a space or thread, and gives back.

namespace memprof::inline MEMPROF_ABI::extend {

inline void ledger::forget() noexcept {
  for (detail::space_ledger* space : spaces_) {
    if (space != nullptr) detail::destroy_paged(space->shared());
  }
  for (detail::shared_memory* memory : memories_) detail::destroy_paged(memory);
  memories_.clear();
  for (detail::space_ledger*& space : spaces_) {
    detail::destroy_paged(space);
    space = nullptr;
  }
  for (detail::thread_state* thread : threads_) {
    if (thread != nullptr) thread->~thread_state();
  }
  for (std::byte* pages : thread_pages_) detail::unmap_pages(pages, thread_page_bytes);
  threads_.clear();
  thread_pages_.clear();
  thread_count_ = 0;
  windowed_ = nullptr;
  changes_ = detail::space_changes{};
  space_end_ = 0;
  history_.~segment_history();
  new (&history_) detail::segment_history{options_.full_segments, options_.segment_names};
  checkpoints_ = detail::checkpoint_history{};
  operations_ = detail::operation_visitor{options_.operations};
  operations_.infer_from(options_.leading_thread);
  clock_ = clock_readings{begin_stamp_};
  stamp_ = segment_begin_ = 0;
  events_ = events_of_saved_state_ = rejected_events_ = dropped_events_ = reentrant_events_ = missing_events_ = other_names_ = 0;
  are_more_missing_ = has_ended_ = is_missing_events_ = false;
}

inline std::size_t ledger::bytes() const noexcept {
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

inline ledger::space_setting* ledger::setting_of(std::uint8_t space) noexcept {
  if (spaces_[space] != nullptr) return nullptr;
  if (space >= settings_.size() && !settings_.resize(std::size_t{space} + 1)) return nullptr;
  return &settings_[space];
}

inline detail::thread_state* ledger::find_thread(std::uint32_t ring) noexcept {
  if (ring < threads_.size() && threads_[ring] != nullptr) [[likely]]
    return threads_[ring];
  if (ring > detail::block::max_thread || (ring >= threads_.size() && !threads_.resize(ring + 1))) return nullptr;
  return threads_[ring] = make_thread(ring);
}

inline detail::thread_state* ledger::make_thread(std::uint32_t ring) noexcept {
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

inline std::uint8_t ledger::space_of(std::uint64_t address) noexcept {
  std::uint8_t first = any_space;
  for (std::size_t id = 0; id < space_end_; ++id) {
    if (spaces_[id] == nullptr) continue;
    if (spaces_[id]->find(address)) return static_cast<std::uint8_t>(id);
    if (first == any_space) first = static_cast<std::uint8_t>(id);
  }
  if (first != any_space) return first;
  return make_space(cpu_space) == nullptr ? any_space : cpu_space;
}

inline detail::space_ledger* ledger::make_space(std::uint8_t id) noexcept {
  detail::space_ledger* const space = detail::make_paged<detail::space_ledger>(options_, history_, segment_begin_);
  if (space == nullptr) return nullptr;
  if (!space->is_usable()) {
    detail::destroy_paged(space);
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

inline bool ledger::limit(std::uint8_t space, std::int64_t capacity, bool is_per_core) noexcept {
  space_setting* const setting = setting_of(space);
  if (setting == nullptr) return false;
  setting->capacity = capacity;
  setting->is_per_core = is_per_core;
  return true;
}

inline bool ledger::place(std::uint8_t space, label memory) noexcept {
  space_setting* const setting = setting_of(space);
  if (setting == nullptr) return false;
  setting->memory = memory;
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::extend
