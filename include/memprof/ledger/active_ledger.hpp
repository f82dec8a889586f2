#pragma once

#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/tally.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct frame_parts;
}

/// The bytes of blocks allocated on streams, until no stream uses them any more: PyTorch's `active_bytes`. A freed block
/// stays active from the request of its deallocation to the completion, and only then is it kept here, by its address.
class active_ledger {
 public:
  void allocate(std::uint64_t address, std::int64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    level_.change(bytes);
  }
  /// More than is active was never allocated on a stream: the bytes do not get negative.
  void deallocate(std::int64_t bytes) noexcept { level_.change(-std::min(bytes, level_.current())); }

  /// A live block is freed, and stays active. False if the system has no memory to keep it.
  [[nodiscard]] bool request(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    const live_blocks::insertion made = pending_.insert(address);
    if (made.entry == nullptr) return false;
    *made.entry = {address, bytes, 0, 0};
    return true;
  }
  /// No stream uses the block at `address` any more. `bytes` are as the event has them.
  void complete(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    if (const live_blocks::place found = pending_.find(address)) return end(found);
    unmatched_completions.add(bytes);
  }
  /// A deallocation was requested of a block that is not known.
  void note_unknown_request() noexcept { is_used_ = true; }

  /// Ends the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { level_.compact(history); }

  /// Whether any event came.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// How many freed blocks streams may still use.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  /// The active bytes, in each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return pending_.bytes() + level_.bytes(); }

  tally unmatched_completions;
  tally missing_completions;

 private:
  friend struct detail::frame_parts;

  void end(const live_blocks::place& found) noexcept {
    deallocate(static_cast<std::int64_t>(found->bytes));
    pending_.erase(found);
  }
  /// What waits at an address that comes again has been completed unseen.
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

}  // namespace memprof::inline MEMPROF_ABI
