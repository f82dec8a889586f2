#pragma once

#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

/// @file
/// What a PyTorch memory snapshot has of one memory space of a trace: the events of a window, and the blocks and segments at its
/// end.

namespace memprof::inline MEMPROF_ABI::detail {

struct snapshot_event {
  torch_action action;
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

  void on_allocation(const replay_state&, const replayed_block& block);
  void on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t);
  void on_allocator_event(const replay_state&, const event& happened, std::uint32_t) { note(spaces[happened.space]); }

 private:
  static void note(space_changes& space);
};

/// Collects one memory space. Takes memory for the window, for what is live and for what is reserved.
class snapshot_fold : public replay_handler {
 public:
  snapshot_fold(std::uint8_t space, std::uint64_t first, std::uint64_t last) : space_(space), first_(first), last_(last) {}

  void on_allocation(const replay_state& at, const replayed_block& block);
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t);
  void on_annotation(const replay_state&, const replayed_block& block, category);
  void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t);

  /// Whether the segments are the allocator's own, with all blocks inside what it had reserved. Otherwise they are made up around
  /// the addresses of blocks.
  [[nodiscard]] bool has_own_segments() const noexcept { return !reserved_.empty() && outside_ == 0; }
  [[nodiscard]] const std::vector<snapshot_event>& events() const noexcept { return events_; }
  /// By address, including blocks that are freed but still in use (`is_awaited`).
  [[nodiscard]] const std::map<std::uint64_t, replayed_block>& blocks() const noexcept { return live_; }
  [[nodiscard]] std::map<std::uint64_t, snapshot_segment> segments() const;
  /// Blocks that a snapshot cannot hold: they overlap another block, or have no address below 2^53.
  [[nodiscard]] std::uint64_t left_out_blocks() const noexcept { return left_out_blocks_; }
  [[nodiscard]] std::uint64_t left_out_bytes() const noexcept { return left_out_bytes_; }
  [[nodiscard]] std::int64_t end_ns() const noexcept { return end_ns_; }

 private:
  /// Counts a change; false after the window.
  [[nodiscard]] bool advance() noexcept { return ++count_ <= last_; }

  void add(torch_action action, const event& happened, std::int64_t now_ns);
  void add(torch_action action, std::uint64_t address, const replayed_block& block, std::int64_t now_ns);

  /// Ends a block that has been freed.
  std::map<std::uint64_t, replayed_block>::iterator complete(std::map<std::uint64_t, replayed_block>::iterator freed,
                                                             std::int64_t now_ns);
  /// Where a new block begins, streams are done with freed blocks, whether or not the trace says so.
  void complete_in(std::uint64_t address, std::uint64_t bytes, std::int64_t now_ns);

  /// The address of a block in the snapshot. Blocks on cores, each of which has its own memory, get made-up addresses: 2^36 bytes
  /// for each first core, in which a byte of a core takes as many addresses as a device may have cores.
  [[nodiscard]] static bool map_address(const replayed_block& block, std::uint64_t& address) noexcept;

  /// The same for a new block; also false if it overlaps a live one.
  [[nodiscard]] bool place(const replayed_block& block, std::uint64_t& address) const;

  void touch(std::uint64_t address, std::uint64_t bytes);

  /// Removes [begin, end) from what is reserved; false if none of it was.
  bool take_out(std::uint64_t begin, std::uint64_t end);

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
