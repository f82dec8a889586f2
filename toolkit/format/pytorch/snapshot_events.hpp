#pragma once

#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

/// @file
/// What a PyTorch memory snapshot has of one memory space of a trace: the events of a window, and the blocks and segments at its
/// end.

namespace memprof::inline MEMPROF_ABI::detail {

/// What happened, in PyTorch's terms.
enum class snapshot_action : std::uint8_t { alloc, free_requested, free_completed, segment_alloc, segment_free, oom };

struct snapshot_event {
  snapshot_action action;
  category of;
  std::uint32_t operation;
  std::uint64_t address;
  std::uint64_t bytes;
  std::int64_t time_ns;
  label stream;
  label annotation;
};

struct snapshot_segment {
  std::uint64_t bytes = 0;
  label stream = 0;
};

/// The end of the addresses that viewers in JavaScript, whose numbers are doubles, can tell apart.
inline constexpr std::uint64_t snapshot_address_limit = std::uint64_t{1} << 53;

/// The number of changes of a memory space, and the index of its peak among them.
struct snapshot_scan : replay_handler {
  struct space_changes {
    std::uint64_t count = 0;
    std::uint64_t peak_at = 0;
    std::int64_t live = 0;
    std::int64_t peak = 0;
    bool is_used = false;
  };
  std::array<space_changes, any_space + 1> spaces{};

  void on_allocation(const replay_state&, const replayed_block& block) {
    space_changes& space = spaces[block.space];
    note(space);
    space.live += static_cast<std::int64_t>(block.bytes);
    if (space.live <= space.peak) return;
    space.peak = space.live;
    space.peak_at = space.count;
  }
  void on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t) {
    note(spaces[block.space]);
    spaces[block.space].live -= static_cast<std::int64_t>(block.bytes);
  }
  void on_allocator_event(const replay_state&, const event& happened, std::uint32_t) { note(spaces[happened.space]); }

 private:
  static void note(space_changes& space) {
    space.is_used = true;
    ++space.count;
  }
};

/// Collects one memory space. Takes memory for the window, for what is live and for what is reserved.
class snapshot_fold : public replay_handler {
 public:
  snapshot_fold(std::uint8_t space, std::uint64_t first, std::uint64_t last) : space_(space), first_(first), last_(last) {}

  void on_allocation(const replay_state& at, const replayed_block& block) {
    if (block.space != space_ || !advance()) return;
    end_ns_ = at.now_ns;
    if (block.bytes == 0) return;  // PyTorch has no empty blocks
    std::uint64_t address = 0;
    if (map_address(block, address)) complete_in(address, block.bytes, at.now_ns);
    if (!place(block, address)) {
      ++left_out_blocks_;
      left_out_bytes_ += block.bytes;
      return;
    }
    live_[address] = block;
    touch(address, block.bytes);
    if (count_ <= first_) return;
    event_of_[address] = events_.size();
    add(snapshot_action::alloc, address, block, at.now_ns);
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
    if (block.space != space_ || !advance()) return;
    end_ns_ = at.now_ns;
    std::uint64_t address = 0;
    if (!map_address(block, address)) return;
    const auto found = live_.find(address);
    if (found == live_.end() || found->second.ordinal != block.ordinal) return;
    found->second = block;
    event_of_.erase(address);
    add(snapshot_action::free_requested, address, block, at.now_ns);
    if (!block.is_awaited) complete(found, at.now_ns);
  }
  void on_annotation(const replay_state&, const replayed_block& block, category) {
    std::uint64_t address = 0;
    if (block.space != space_ || count_ > last_ || !map_address(block, address)) return;
    const auto found = live_.find(address);
    if (found == live_.end() || found->second.ordinal != block.ordinal) return;
    found->second = block;
    const auto allocation = event_of_.find(address);
    if (allocation == event_of_.end()) return;
    events_[allocation->second].annotation = block.annotation;
    events_[allocation->second].of = block.category;
  }
  void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t) {
    if (happened.space != space_ || !advance()) return;
    end_ns_ = at.now_ns;
    if (happened.kind == event_kind::complete_deallocation) {
      const auto found = live_.find(happened.address);
      if (found != live_.end() && found->second.is_awaited) complete(found, at.now_ns);
    } else if (happened.kind == event_kind::out_of_memory) {
      add(snapshot_action::oom, happened, at.now_ns);
    } else if (happened.kind == event_kind::reserve) {
      if (happened.bytes == 0 || happened.bytes >= snapshot_address_limit || happened.address >= snapshot_address_limit) return;
      take_out(happened.address, happened.address + happened.bytes);
      reserved_[happened.address] = {happened.bytes, happened.label};
      add(snapshot_action::segment_alloc, happened, at.now_ns);
    } else {
      event released = happened;
      const auto found = reserved_.find(happened.address);
      if (released.bytes == 0 && found != reserved_.end()) released.bytes = found->second.bytes;
      if (released.bytes == 0 || released.bytes >= snapshot_address_limit) return;
      if (take_out(released.address, released.address + released.bytes)) add(snapshot_action::segment_free, released, at.now_ns);
    }
  }

  /// Whether the segments are the allocator's own, with all blocks inside what it had reserved. Otherwise they are made up around
  /// the addresses of blocks.
  [[nodiscard]] bool has_own_segments() const noexcept { return !reserved_.empty() && outside_ == 0; }
  [[nodiscard]] const std::vector<snapshot_event>& events() const noexcept { return events_; }
  /// By address, including blocks that are freed but still in use (`is_awaited`).
  [[nodiscard]] const std::map<std::uint64_t, replayed_block>& blocks() const noexcept { return live_; }
  [[nodiscard]] std::map<std::uint64_t, snapshot_segment> segments() const {
    if (has_own_segments()) return reserved_;
    std::map<std::uint64_t, snapshot_segment> made_up;
    for (const auto& [begin, end] : touched_) made_up[begin] = {end - begin, 0};
    return made_up;
  }
  /// Blocks that a snapshot cannot hold: they overlap another block, or have no address below 2^53.
  [[nodiscard]] std::uint64_t left_out_blocks() const noexcept { return left_out_blocks_; }
  [[nodiscard]] std::uint64_t left_out_bytes() const noexcept { return left_out_bytes_; }
  [[nodiscard]] std::int64_t end_ns() const noexcept { return end_ns_; }

 private:
  /// Counts a change; false after the window.
  [[nodiscard]] bool advance() noexcept { return ++count_ <= last_; }

  void add(snapshot_action action, const event& happened, std::int64_t now_ns) {
    if (count_ <= first_) return;
    events_.push_back({action, category::other, 0, happened.address, happened.bytes, now_ns, happened.label, 0});
  }
  void add(snapshot_action action, std::uint64_t address, const replayed_block& block, std::int64_t now_ns) {
    if (count_ <= first_) return;
    events_.push_back({action, block.category, block.operation, address, block.bytes, now_ns, block.stream, block.annotation});
  }

  /// Ends a block that has been freed.
  std::map<std::uint64_t, replayed_block>::iterator complete(std::map<std::uint64_t, replayed_block>::iterator freed,
                                                             std::int64_t now_ns) {
    add(snapshot_action::free_completed, freed->first, freed->second, now_ns);
    return live_.erase(freed);
  }
  /// Where a new block begins, streams are done with freed blocks, whether or not the trace says so.
  void complete_in(std::uint64_t address, std::uint64_t bytes, std::int64_t now_ns) {
    auto next = live_.lower_bound(address);
    if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) --next;
    while (next != live_.end() && next->first < address + bytes) {
      next = next->second.is_awaited ? complete(next, now_ns) : std::next(next);
    }
  }

  /// The address of a block in the snapshot. Blocks on cores, each of which has its own memory, get made-up addresses: 2^36 bytes
  /// for each first core, in which a byte of a core takes as many addresses as a device may have cores.
  [[nodiscard]] static bool map_address(const replayed_block& block, std::uint64_t& address) noexcept {
    constexpr std::uint64_t max_cores = 4096;
    constexpr unsigned core_bits = 36;
    address = block.address;
    if (block.is_on_cores) {
      const core_range cores = core_range::unpacked(block.cores);
      const std::uint64_t own = address_on_cores(block.address, cores);
      if (cores.count() > max_cores || own >= (std::uint64_t{1} << core_bits) / max_cores) return false;
      address = (std::uint64_t{cores.x0} | std::uint64_t{cores.y0} << 8) << core_bits | own * max_cores;
    }
    return address < snapshot_address_limit && block.bytes < snapshot_address_limit - address;
  }

  /// The same for a new block; also false if it overlaps a live one.
  [[nodiscard]] bool place(const replayed_block& block, std::uint64_t& address) const {
    if (!map_address(block, address)) return false;
    const auto next = live_.lower_bound(address);
    if (next != live_.end() && next->first < address + block.bytes) return false;
    return next == live_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= address;
  }

  void touch(std::uint64_t address, std::uint64_t bytes) {
    const auto around = reserved_.upper_bound(address);
    const bool is_inside =
        around != reserved_.begin() && address + bytes <= std::prev(around)->first + std::prev(around)->second.bytes;
    if (!is_inside) ++outside_;
    // Whole pages of 2 MiB, the unit in which device memory is mapped; adjacent pages are joined.
    constexpr std::uint64_t page = std::uint64_t{2} << 20;
    std::uint64_t begin = address / page * page;
    std::uint64_t end = (address + bytes + page - 1) / page * page;
    auto next = touched_.lower_bound(begin);
    if (next != touched_.begin() && std::prev(next)->second >= begin) --next;
    while (next != touched_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = touched_.erase(next);
    }
    touched_[begin] = end;
  }

  /// Removes [begin, end) from what is reserved; false if none of it was.
  bool take_out(std::uint64_t begin, std::uint64_t end) {
    auto next = reserved_.lower_bound(begin);
    if (next != reserved_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin) --next;
    bool is_any = false;
    while (next != reserved_.end() && next->first < end) {
      const std::uint64_t old_begin = next->first;
      const std::uint64_t old_end = old_begin + next->second.bytes;
      const label stream = next->second.stream;
      next = reserved_.erase(next);
      if (old_begin < begin) reserved_[old_begin] = {begin - old_begin, stream};
      if (old_end > end) reserved_[end] = {old_end - end, stream};
      is_any = true;
    }
    return is_any;
  }

  std::uint8_t space_;
  std::uint64_t first_;
  std::uint64_t last_;
  std::uint64_t count_ = 0;
  std::uint64_t outside_ = 0;
  std::uint64_t left_out_blocks_ = 0;
  std::uint64_t left_out_bytes_ = 0;
  std::int64_t end_ns_ = 0;
  std::vector<snapshot_event> events_;
  std::unordered_map<std::uint64_t, std::size_t> event_of_;  // of live blocks allocated within the window, by address
  std::map<std::uint64_t, replayed_block> live_;
  std::map<std::uint64_t, snapshot_segment> reserved_;
  std::map<std::uint64_t, std::uint64_t> touched_;  // begin and end
};

}  // namespace memprof::inline MEMPROF_ABI::detail
