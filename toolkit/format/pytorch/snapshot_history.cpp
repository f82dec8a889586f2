#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_history.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/toolkit/format/quoted_text.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

std::string number_of(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

void torch_history::setting(std::string_view name, const std::string& value) {
  constexpr std::size_t most = 1024;  // there are about twenty
  if (settings.size() == most) refuse("'allocator_settings' has more than " + std::to_string(most) + " entries");
  settings.push_back({std::string{name}, value});
}

void torch_history::unknown_section(std::string_view key) {
  constexpr std::size_t most = 32;
  if (unknown_sections.size() < most) unknown_sections.push_back(detail::quoted(key));
}

void torch_history::annotation(const torch_annotation& made) {
  if (made.name.empty()) return;
  annotations.push_back(made);
  note_time(made.time_us);
}

void torch_history::segment(const torch_segment& made) {
  if (made.device < 0) refuse("a segment has the invalid device " + std::to_string(made.device));
  const auto number = static_cast<std::size_t>(made.device);
  device_state& on = device(number);
  if (made.total_size == 0) refuse("segment " + std::to_string(segments.size()) + ": expected 'total_size' above 0");
  if (!on.segments_.insert(made.address).second) {
    refuse("segment " + std::to_string(segments.size()) + ": " + torch_device_name(number) +
           " has another one at the same address, " + std::to_string(made.address));
  }
  segments.push_back(made);
}

void torch_history::event(std::size_t number, const torch_event& happened) {
  using action = torch_action;
  device_state& on = device(number);
  ++on.events;
  note_time(happened.time_us);
  switch (happened.action) {
    case action::alloc: note_allocation(on, number, happened); break;
    case action::free_requested:
      on.has_requests_ = true;
      note_free(on, number, happened, false);
      break;
    case action::free_completed: note_free(on, number, happened, true); break;
    case action::segment_alloc: on.reserved_[happened.address] = happened.bytes; break;
    case action::segment_free:
      if (on.reserved_.erase(happened.address) == 0)
        on.reserved_before.try_emplace(happened.address, range{happened.bytes, stream_of(happened.stream, happened.pool)});
      break;
    case action::other:
      if (unknown_events++ == 0) unknown_action = stacks.name(happened.unknown_action);
      has_other_unknown_ = has_other_unknown_ || unknown_action != stacks.name(happened.unknown_action);
      break;
    default: break;
  }
}

void torch_history::overflowed(std::size_t number) {
  if (number < torch_pinned) device(number).is_full = true;
}

void torch_history::finish() {
  bool has_segments[2] = {};  // of the devices, of the host: either may not have been recorded
  for (const torch_segment& segment : segments) {
    has_segments[segment.device == std::int64_t{torch_pinned} ? 1 : 0] = true;
    device_state& on = device(static_cast<std::size_t>(segment.device));
    const label stream = stream_of(segment.stream, segment.pool);
    add_reserved(on, segment, stream);
    for (const torch_block& block : segment.blocks) compare(on, segment, block, stream);
  }
  for (auto& [number, on] : devices) {
    for (const auto& [address, block] : on.seen_) {
      if (has_segments[number == torch_pinned ? 1 : 0] && block.state != device_state::seen_block::completed) ++contradictions;
    }
    if (on.has_requests_) {
      for (const std::uint64_t address : on.completed_only_) on.before.at(address).is_awaited = true;
    }
    on.completed_only_ = {};
    on.seen_ = {};
    on.reserved_ = {};
    on.segments_ = {};
    for (const auto& [address, block] : on.before) {
      if (block.is_awaited) {
        ++awaited_before;
      } else {
        ++blocks_before;
        bytes_before += block.bytes;
      }
    }
  }
  if (begin_us == std::numeric_limits<std::int64_t>::max()) begin_us = 0;
  std::stable_sort(annotations.begin(), annotations.end(),
                   [](const auto& left, const auto& right) { return left.time_us < right.time_us; });
}

label torch_history::stream_of(std::int64_t stream, const torch_pool& pool) {
  std::string name = stream == 0 ? "default" : std::to_string(stream);
  name += name_separator;
  if (!(pool == torch_pool{})) name += std::to_string(pool.first) + ":" + std::to_string(pool.second);
  return streams.intern(name);
}

std::vector<torch_segment_fact> torch_history::segment_facts() const {
  std::vector<torch_segment_fact> rows;
  for (const torch_segment& segment : segments) {
    const std::int64_t device = segment.device == std::int64_t{torch_pinned} ? -1 : segment.device;
    rows.push_back({device, static_cast<std::int64_t>(segment.address), static_cast<std::int64_t>(segment.total_size),
                    segment.allocated_size, segment.active_size, segment.requested_size, segment.stream, segment.type,
                    std::to_string(segment.pool.first) + ":" + std::to_string(segment.pool.second),
                    segment.is_expandable ? 1 : 0});
  }
  return rows;
}

std::string torch_history::disagreement() const {
  if (contradictions == 0) return {};
  return "history and segments disagree about " + number_of(contradictions, "block") +
         ": live at the end in only one of them, or with different sizes";
}

std::string torch_history::impossibility() const {
  if (impossible_events == 0) return {};
  return number_of(impossible_events, "contradictory event") + "; numbers from there on may be wrong: " + first_impossible;
}

std::vector<std::string> torch_history::remarks(bool is_cut_off) const {
  std::vector<std::string> all;
  if (blocks_before != 0) {
    all.push_back("put " + number_of(blocks_before, "block") + " (" + number_of(bytes_before, "byte") +
                  ") from before the history into the segment " + std::string{torch_before_segment} +
                  (is_full() ? "; the history's ring buffer was full, and older events are gone" : "") +
                  (is_cut_off ? "; some may have been allocated in the missing part" : ""));
  }
  if (impossible_events != 0) all.push_back(impossibility());
  if (!is_cut_off && contradictions != 0) all.push_back(disagreement());
  if (unknown_events != 0) {
    all.push_back("left out " + number_of(unknown_events, "event") + " of unknown kinds, perhaps from a newer PyTorch: " +
                  detail::quoted(unknown_action) + (has_other_unknown_ ? " and others" : ""));
  }
  for (const std::string& key : unknown_sections)
    all.push_back("left out " + key + ", a key unknown to this version; the numbers are not exact: a newer memprof may read it");
  return all;
}

void torch_history::refuse(const std::string& fault) const { raise("cannot read '" + path_.string() + "': " + fault); }

torch_history::device_state& torch_history::device(std::size_t number) {
  if (number > torch_pinned) refuse("device " + std::to_string(number) + " must be below " + std::to_string(torch_pinned));
  if (number != torch_pinned) {
    for (std::size_t lower = number; lower-- > 0 && devices.try_emplace(lower).second;) {
    }
  }
  return devices[number];
}

bool torch_history::is_full() const {
  return std::any_of(devices.begin(), devices.end(), [](const auto& each) { return each.second.is_full; });
}

void torch_history::note_impossible(std::size_t number, const torch_event& happened, const std::string& what) {
  if (impossible_events++ != 0) return;
  first_impossible = "event " + std::to_string(device(number).events - 1) + " of " + torch_device_name(number) + " " + what +
                     " at address " + std::to_string(happened.address);
}

void torch_history::note_allocation(device_state& on, std::size_t number, const torch_event& made) {
  using state = device_state::seen_block;
  const auto [found, is_new] = on.seen_.try_emplace(made.address, state{made.bytes, state::live});
  if (is_new) return;
  if (found->second.state != state::completed) note_impossible(number, made, "allocates where a block is live,");
  found->second = {made.bytes, state::live};
}

void torch_history::note_free(device_state& on, std::size_t number, const torch_event& freed, bool is_completed) {
  using state = device_state::seen_block;
  const auto found = on.seen_.find(freed.address);
  if (found == on.seen_.end()) return note_free_before(on, number, freed, is_completed);
  state& block = found->second;
  if (block.state == state::completed || (!is_completed && block.state == state::requested)) {
    note_impossible(number, freed, "frees a free block");
  } else if (block.bytes != freed.bytes) {
    note_impossible(number, freed,
                    "frees " + std::to_string(freed.bytes) + " bytes of a block of " + std::to_string(block.bytes));
    block.bytes = freed.bytes;
  }
  block.state = is_completed ? state::completed : block.state == state::completed ? state::completed : state::requested;
}

void torch_history::note_free_before(device_state& on, std::size_t number, const torch_event& freed, bool is_completed) {
  const bool is_new = add_before(on, freed);
  live_block& block = on.before.at(freed.address);
  if (is_new && is_completed) on.completed_only_.push_back(freed.address);
  if (!is_new && (block.is_completed || !is_completed)) note_impossible(number, freed, "frees a free block");
  if (!is_new && block.bytes != freed.bytes) {
    note_impossible(number, freed,
                    "frees " + std::to_string(freed.bytes) + " bytes of a block of " + std::to_string(block.bytes));
  }
  block.is_completed = block.is_completed || is_completed;
}

void torch_history::compare(device_state& on, const torch_segment& segment, const torch_block& block, label stream) {
  const bool is_within = block.address >= segment.address && block.size <= segment.total_size &&
                         block.address - segment.address <= segment.total_size - block.size;
  if (!is_within || block.bytes > block.size) ++contradictions;
  const auto found = on.seen_.find(block.address);
  if (found != on.seen_.end() && found->second.state != device_state::seen_block::completed) {
    const bool is_awaited = found->second.state == device_state::seen_block::requested;
    if (found->second.bytes != block.bytes || (on.has_requests_ && is_awaited != block.is_awaited)) ++contradictions;
    found->second.state = device_state::seen_block::completed;
    return;
  }
  if (found != on.seen_.end()) {  // it was freed since, or occurs twice in the segments
    ++contradictions;
    return;
  }
  const auto [known, is_new] =
      on.before.try_emplace(block.address, live_block{block.bytes, block.stack, stream, block.is_awaited});
  if (!is_new && known->second.stack == 0) known->second.stack = block.stack;  // its free is in the history
  const bool is_as_it_was = is_new || (!known->second.is_completed && known->second.bytes == block.bytes && block.is_awaited);
  if (!is_as_it_was || known->second.is_in_segment) ++contradictions;
  known->second.is_in_segment = true;
}

bool torch_history::add_before(device_state& on, const torch_event& freed) {
  return on.before.try_emplace(freed.address, live_block{freed.bytes, 0, stream_of(freed.stream, freed.pool)}).second;
}

void torch_history::note_time(std::int64_t time_us) {
  constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 1000;
  if (time_us > 0 && time_us < latest) begin_us = std::min(begin_us, time_us);
}

void torch_history::add_reserved(device_state& on, const torch_segment& segment, label stream) {
  std::uint64_t at = segment.address;
  const std::uint64_t end = segment.address + segment.total_size;
  for (auto next = on.reserved_.lower_bound(at); next != on.reserved_.end() && next->first < end; ++next) {
    if (next->first > at) on.reserved_before.try_emplace(at, range{next->first - at, stream});
    at = next->first + next->second;
  }
  if (at < end) on.reserved_before.try_emplace(at, range{end - at, stream});
}

}  // namespace memprof::inline MEMPROF_ABI::detail
