#include <memprof/config.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_events.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace memprof::inline MEMPROF_ABI::detail {

void snapshot_scan::on_allocation(const replay_state&, const replayed_block& block) {
  space_changes& space = spaces[block.space];
  note(space);
  space.live += static_cast<std::int64_t>(block.bytes);
  if (space.live <= space.peak) return;
  space.peak = space.live;
  space.peak_at = space.count;
}

void snapshot_scan::on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t) {
  note(spaces[block.space]);
  spaces[block.space].live -= static_cast<std::int64_t>(block.bytes);
}

void snapshot_scan::note(space_changes& space) {
  space.is_used = true;
  ++space.count;
}

void snapshot_fold::on_allocation(const replay_state& at, const replayed_block& block) {
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
  add(torch_action::alloc, address, block, at.now_ns);
}

void snapshot_fold::on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
  if (block.space != space_ || !advance()) return;
  end_ns_ = at.now_ns;
  std::uint64_t address = 0;
  if (!map_address(block, address)) return;
  const auto found = live_.find(address);
  if (found == live_.end() || found->second.ordinal != block.ordinal) return;
  found->second = block;
  event_of_.erase(address);
  add(torch_action::free_requested, address, block, at.now_ns);
  if (!block.is_awaited) complete(found, at.now_ns);
}

void snapshot_fold::on_annotation(const replay_state&, const replayed_block& block, category) {
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

void snapshot_fold::on_allocator_event(const replay_state& at, const event& happened, std::uint32_t) {
  if (happened.space != space_ || !advance()) return;
  end_ns_ = at.now_ns;
  if (happened.kind == event_kind::complete_deallocation) {
    const auto found = live_.find(happened.address);
    if (found != live_.end() && found->second.is_awaited) complete(found, at.now_ns);
  } else if (happened.kind == event_kind::out_of_memory) {
    add(torch_action::oom, happened, at.now_ns);
  } else if (happened.kind == event_kind::reserve) {
    if (happened.bytes == 0 || happened.bytes >= snapshot_address_limit || happened.address >= snapshot_address_limit) return;
    take_out(happened.address, happened.address + happened.bytes);
    reserved_[happened.address] = {happened.bytes, happened.label};
    add(torch_action::segment_alloc, happened, at.now_ns);
  } else {
    event released = happened;
    const auto found = reserved_.find(happened.address);
    if (released.bytes == 0 && found != reserved_.end()) released.bytes = found->second.bytes;
    if (released.bytes == 0 || released.bytes >= snapshot_address_limit) return;
    if (take_out(released.address, released.address + released.bytes)) add(torch_action::segment_free, released, at.now_ns);
  }
}

std::map<std::uint64_t, snapshot_segment> snapshot_fold::segments() const {
  if (has_own_segments()) return reserved_;
  std::map<std::uint64_t, snapshot_segment> made_up;
  for (const auto& [begin, end] : touched_) made_up[begin] = {end - begin, 0};
  return made_up;
}

void snapshot_fold::add(torch_action action, const event& happened, std::int64_t now_ns) {
  if (count_ <= first_) return;
  events_.push_back({action, category::other, 0, happened.address, happened.bytes, now_ns, happened.label, 0});
}

void snapshot_fold::add(torch_action action, std::uint64_t address, const replayed_block& block, std::int64_t now_ns) {
  if (count_ <= first_) return;
  events_.push_back({action, block.category, block.operation, address, block.bytes, now_ns, block.stream, block.annotation});
}

std::map<std::uint64_t, replayed_block>::iterator snapshot_fold::complete(std::map<std::uint64_t, replayed_block>::iterator freed,
                                                                          std::int64_t now_ns) {
  add(torch_action::free_completed, freed->first, freed->second, now_ns);
  return live_.erase(freed);
}

void snapshot_fold::complete_in(std::uint64_t address, std::uint64_t bytes, std::int64_t now_ns) {
  auto next = live_.lower_bound(address);
  if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) --next;
  while (next != live_.end() && next->first < address + bytes) {
    next = next->second.is_awaited ? complete(next, now_ns) : std::next(next);
  }
}

bool snapshot_fold::map_address(const replayed_block& block, std::uint64_t& address) noexcept {
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

bool snapshot_fold::place(const replayed_block& block, std::uint64_t& address) const {
  if (!map_address(block, address)) return false;
  const auto next = live_.lower_bound(address);
  if (next != live_.end() && next->first < address + block.bytes) return false;
  return next == live_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= address;
}

void snapshot_fold::touch(std::uint64_t address, std::uint64_t bytes) {
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

bool snapshot_fold::take_out(std::uint64_t begin, std::uint64_t end) {
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

}  // namespace memprof::inline MEMPROF_ABI::detail
