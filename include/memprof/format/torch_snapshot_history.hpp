#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/format/torch_snapshot_facts.hpp>
#include <memprof/format/torch_snapshot_records.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a snapshot says when all of it has been read once: segments, settings, annotations, and above all what was live before
/// its history begins. It is what the readers of its encodings hand their records to.
class torch_history {
 public:
  struct live_block {
    std::uint64_t bytes;
    std::uint32_t stack;
    label stream;             ///< of `streams`
    bool is_awaited = false;  ///< freed before the history, but still in use
  };
  struct range {
    std::uint64_t bytes;
    label stream;
  };
  struct device_state {
    std::uint64_t events = 0;
    std::map<std::uint64_t, live_block> before;  ///< blocks that were live before the history
    std::map<std::uint64_t, range> reserved_before;

   private:
    friend torch_history;
    bool has_requests_ = false;                  // of frees: without them a history of old tells only when frees were completed
    std::vector<std::uint64_t> completed_only_;  // addresses of blocks from before the history
    std::unordered_map<std::uint64_t, std::uint64_t> live_;  // of blocks that the history has allocated: bytes by address
    std::map<std::uint64_t, std::uint64_t> reserved_;        // likewise of segments
    std::unordered_set<std::uint64_t> segments_;             // addresses of the snapshot's segments
  };

  explicit torch_history(std::filesystem::path path) : path_(std::move(path)) {}

  // --- a sink of records --------------------------------------------------------------------------------------------

  [[nodiscard]] std::uint64_t event_count(std::size_t number) { return device(number).events; }
  void setting(std::string_view name, const std::string& value) {
    constexpr std::size_t most = 1024;  // of some twenty
    if (settings.size() == most) refuse("'allocator_settings' has more than " + std::to_string(most) + " entries");
    settings.push_back({std::string{name}, value});
  }
  void annotation(const torch_annotation& made) {
    if (made.name.empty()) return;
    annotations.push_back(made);
    note_time(made.time_us);
  }
  void segment(const torch_segment& made) {
    if (made.device < 0) refuse("a segment is of device " + std::to_string(made.device));
    device_state& on = device(static_cast<std::size_t>(made.device));
    if (made.total_size == 0) refuse("segment " + std::to_string(segments.size()) + ": expected 'total_size' above 0");
    if (!on.segments_.insert(made.address).second) {
      refuse("segment " + std::to_string(segments.size()) + ": device " + std::to_string(made.device) +
             " has another one at the same address, " + std::to_string(made.address));
    }
    segments.push_back(made);
  }
  void event(std::size_t number, const torch_event& happened) {
    using action = torch_event::action_type;
    device_state& on = device(number);
    ++on.events;
    note_time(happened.time_us);
    switch (happened.action) {
      case action::alloc: on.live_[happened.address] = happened.bytes; break;
      case action::free_requested:
        on.has_requests_ = true;
        if (on.live_.count(happened.address) == 0) (void)add_before(on, happened);
        break;
      case action::free_completed:
        if (on.live_.erase(happened.address) == 0 && add_before(on, happened)) on.completed_only_.push_back(happened.address);
        break;
      case action::segment_alloc: on.reserved_[happened.address] = happened.bytes; break;
      case action::segment_free:
        if (on.reserved_.erase(happened.address) == 0)
          on.reserved_before.try_emplace(happened.address, range{happened.bytes, stream_of(happened.stream, happened.pool)});
        break;
      default: break;
    }
  }

  /// Ends the reading: compares what the history has live with the segments. What only they have was live before.
  void finish() {
    for (const torch_segment& segment : segments) {
      device_state& on = device(static_cast<std::size_t>(segment.device));
      const label stream = stream_of(segment.stream, segment.pool);
      add_reserved(on, segment, stream);
      for (const torch_block& block : segment.blocks) {
        const auto found = on.live_.find(block.address);
        if (found == on.live_.end()) {
          const auto [known, is_new] =
              on.before.try_emplace(block.address, live_block{block.bytes, block.stack, stream, block.is_awaited});
          if (!is_new && known->second.stack == 0) known->second.stack = block.stack;  // its free is in the history
        } else {
          if (found->second != block.bytes) ++contradictions;
          on.live_.erase(found);
        }
      }
    }
    for (device_state& on : devices) {
      if (!segments.empty()) contradictions += on.live_.size();
      if (on.has_requests_) {
        for (const std::uint64_t address : on.completed_only_) on.before.at(address).is_awaited = true;
      }
      on.completed_only_ = {};
      on.live_ = {};
      on.reserved_ = {};
      on.segments_ = {};
      for (const auto& [address, block] : on.before) {
        ++blocks_before;
        bytes_before += block.bytes;
      }
    }
    if (begin_us == std::numeric_limits<std::int64_t>::max()) begin_us = 0;
    std::stable_sort(annotations.begin(), annotations.end(),
                     [](const auto& left, const auto& right) { return left.time_us < right.time_us; });
  }

  // --- what it found ------------------------------------------------------------------------------------------------

  /// The name of a stream and pool as traces have it, in `streams`.
  [[nodiscard]] label stream_of(std::int64_t stream, const torch_pool& pool) {
    std::string name = stream == 0 ? "default" : std::to_string(stream);
    name += name_separator;
    if (!(pool == torch_pool{})) name += std::to_string(pool.first) + ":" + std::to_string(pool.second);
    return streams.intern(name);
  }
  [[nodiscard]] std::vector<torch_segment_fact> segment_facts() const {
    std::vector<torch_segment_fact> rows;
    for (const torch_segment& segment : segments) {
      rows.push_back({segment.device, static_cast<std::int64_t>(segment.address), static_cast<std::int64_t>(segment.total_size),
                      segment.allocated_size, segment.active_size, segment.requested_size, segment.stream, segment.type,
                      std::to_string(segment.pool.first) + ":" + std::to_string(segment.pool.second),
                      segment.is_expandable ? 1 : 0});
    }
    return rows;
  }

  torch_stacks stacks;
  label_table streams;
  std::vector<device_state> devices;
  std::vector<torch_segment> segments;
  std::vector<torch_annotation> annotations;  ///< by time
  std::vector<torch_setting_fact> settings;
  std::int64_t begin_us = std::numeric_limits<std::int64_t>::max();  ///< the earliest time
  std::uint64_t blocks_before = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t contradictions = 0;  ///< blocks live at the history's end that the segments have not, or with other bytes

 private:
  [[noreturn]] void refuse(const std::string& fault) const { raise("cannot read '" + path_.string() + "': " + fault); }

  [[nodiscard]] device_state& device(std::size_t number) {
    // PyTorch has no more, and a file that names more must not take memory for them.
    constexpr std::size_t most = 254;
    if (number >= most) refuse("device " + std::to_string(number) + " must be below " + std::to_string(most));
    if (devices.size() <= number) devices.resize(number + 1);
    return devices[number];
  }
  /// The history has lost the block's allocation: it was there before. After that the address may come again. False if one from
  /// before is known at the address.
  [[nodiscard]] bool add_before(device_state& on, const torch_event& freed) {
    return on.before.try_emplace(freed.address, live_block{freed.bytes, 0, stream_of(freed.stream, freed.pool)}).second;
  }
  void note_time(std::int64_t time_us) {
    constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 1000;
    if (time_us > 0 && time_us < latest) begin_us = std::min(begin_us, time_us);
  }
  /// An expandable segment may consist of parts that the history has seen mapped and others.
  static void add_reserved(device_state& on, const torch_segment& segment, label stream) {
    std::uint64_t at = segment.address;
    const std::uint64_t end = segment.address + segment.total_size;
    for (auto next = on.reserved_.lower_bound(at); next != on.reserved_.end() && next->first < end; ++next) {
      if (next->first > at) on.reserved_before.try_emplace(at, range{next->first - at, stream});
      at = next->first + next->second;
    }
    if (at < end) on.reserved_before.try_emplace(at, range{end - at, stream});
  }

  std::filesystem::path path_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
