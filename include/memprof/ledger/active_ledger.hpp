#pragma once

#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_history.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_facets;

/// The bytes of blocks allocated on streams, until no stream uses them any more: PyTorch's `active_bytes`. A freed block stays
/// active from the request of its deallocation to the completion; only for that time is it kept here, by its address.
class active_ledger {
 public:
  void allocate(std::uint64_t address, std::int64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    level_.change(bytes);
  }
  /// Bytes beyond the active ones were never allocated on a stream: the level does not become negative.
  void deallocate(std::int64_t bytes) noexcept { level_.change(-std::min(bytes, level_.current())); }

  /// Frees a live block, which stays active. False if the system has no memory to keep it.
  [[nodiscard]] bool request(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    const live_blocks::insertion made = pending_.insert(address);
    if (made.entry == nullptr) return false;
    *made.entry = {address, bytes, 0, 0};
    return true;
  }
  /// No stream uses the block at `address` any more. `bytes` is as in the event.
  void complete(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    if (const live_blocks::place found = pending_.find(address)) return end(found);
    unmatched_completions.add(bytes);
  }
  /// Deallocation was requested for an unknown block.
  void note_unknown_request() noexcept { is_used_ = true; }

  /// Ends the segment last added to `history`. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Drops the segments that are no longer kept.
  template <class IsKept>
  void compact(const IsKept& is_kept) noexcept {
    level_.compact(is_kept);
  }
  /// Adds segments in which nothing changed, as `byte_level` does.
  [[nodiscard]] bool repeat(std::size_t first, std::size_t last) noexcept { return !is_used_ || level_.repeat(first, last); }
  void repeat_name(std::size_t row, std::uint64_t times) noexcept { level_.repeat_name(row, times); }

  /// Whether there was any event.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// Number of freed blocks that streams may still use.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  /// The active bytes, for each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return pending_.bytes() + level_.bytes(); }

  event_tally unmatched_completions;
  event_tally missing_completions;

 private:
  friend struct saved_facets;

  void end(const live_blocks::place& found) noexcept {
    deallocate(static_cast<std::int64_t>(found->bytes));
    pending_.erase(found);
  }
  /// If an address is reused, whatever was pending there has been completed unseen.
  void end_unfinished(std::uint64_t address) noexcept {
    const live_blocks::place found = pending_.find(address);
    if (!found) return;
    missing_completions.add(found->bytes);
    end(found);
  }

  live_blocks pending_;
  byte_level level_;
  bool is_used_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
