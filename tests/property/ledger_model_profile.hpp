#pragma once

#include <property/ledger_model.hpp>

namespace memprof::property {

using namespace extend;

inline std::string ledger_model::path_of(const model_names& names, std::size_t index) const {
  const auto escaped = [&](std::size_t one) {
    if (operations_[one].name == others_label) return std::string{"\\other"};
    std::string name = text_of(names, operations_[one].name);
    for (std::size_t at = 0; (at = name.find_first_of("/\\", at)) != std::string::npos; at += 2) name.insert(at, 1, '\\');
    return name.empty() ? std::string{"\\-"} : name;
  };
  std::string path = escaped(index);
  for (std::size_t outer = operations_[index].parent; outer != 0; outer = operations_[outer].parent) {
    path = escaped(outer) + "/" + path;
  }
  return path;
}

inline live_set ledger_model::live_set_at_peak(const model_names& names, const space_state& space, const segment_state& now,
                                               bool has_all_owners) const {
  const bool has_ended = &now != &space.segments.back();
  std::vector<block> held;
  for (const std::size_t ordinal : now.at_peak) held.push_back(space.blocks[ordinal]);
  return live_set_of(names, held, has_ended ? now.categories : categories_of(space, now), has_all_owners);
}

/// Of blocks in the order of their allocation, with the category that counts for each in the sums.
inline live_set ledger_model::live_set_of(const model_names& names, const std::vector<block>& held,
                                          const std::vector<std::size_t>& categories, bool has_all_owners) const {
  live_set set;
  std::map<std::size_t, owned_bytes> by_operation;
  std::map<std::size_t, owned_bytes> by_category;
  for (std::size_t index = 0; index < held.size(); ++index) {
    const block& live = held[index];
    set.bytes += live.bytes;
    ++set.blocks;
    by_operation[live.operation].bytes += live.bytes;
    ++by_operation[live.operation].blocks;
    by_category[categories[index]].bytes += live.bytes;
    ++by_category[categories[index]].blocks;
  }

  // Rows with as many bytes keep the order of the operations' first calls and of the categories' values.
  const auto greatest_first = [](const owned_bytes& left, const owned_bytes& right) { return left.bytes > right.bytes; };
  for (auto& [index, row] : by_operation) {
    row.owner = owner_of(names, index);
    set.by_operation.push_back(row);
  }
  std::stable_sort(set.by_operation.begin(), set.by_operation.end(), greatest_first);
  while (!has_all_owners && set.by_operation.size() > options_.owners_per_segment) {
    set.remaining_bytes += set.by_operation.back().bytes;
    ++set.remaining_operations;
    set.by_operation.pop_back();
  }
  for (auto& [category, row] : by_category) {
    row.owner = detail::category_names[category];
    set.by_category.push_back(row);
  }
  std::stable_sort(set.by_category.begin(), set.by_category.end(), greatest_first);

  std::vector<block> largest = held;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const block& left, const block& right) { return left.bytes > right.bytes; });
  if (largest.size() > options_.largest_blocks) largest.resize(options_.largest_blocks);
  for (const block& shown : largest) set.largest_blocks.push_back(live_block_of(names, shown));
  return set;
}

/// Of each operation: the category of more than half of its bytes, as its blocks were named last.
inline void ledger_model::name_categories(const model_names& names, const space_state& space, const segment_state& at,
                                          memprof::vector<owned_bytes>& rows) const {
  for (owned_bytes& row : rows) {
    for (std::size_t category = 1; category < detail::category_names.size(); ++category) {
      detail::int128 held = 0;
      for (const std::size_t ordinal : at.at_peak) {
        const block& there = space.blocks[ordinal];
        if (there.category == category && owner_of(names, there.operation) == row.owner) held += there.bytes;
      }
      if (2 * held > row.bytes) row.category = detail::category_names[category];
    }
  }
}

inline live_block ledger_model::live_block_of(const model_names& names, const block& shown) const {
  std::vector<std::string> fields{""};
  for (const char character : text_of(names, shown.annotation)) {
    if (character == '\x1f') {
      fields.emplace_back();
    } else {
      fields.back() += character;
    }
  }
  fields.resize(3);
  return {shown.address, shown.bytes, owner_of(names, shown.operation), static_cast<category>(shown.category), fields[0],
          fields[1],     fields[2]};
}

inline segment_usage ledger_model::usage_of(const model_names& names, const space_state& space, std::size_t own_index) const {
  const segment_state& now = space.segments[own_index];
  const bool is_open = own_index + 1 == space.segments.size();
  segment_usage usage;
  usage.segment_peak = now.peak - now.start;
  usage.allocations = now.allocated;
  usage.deallocations = now.freed;
  usage.segment_change = now.allocated - now.freed;
  usage.cumulative_current = now.start + usage.segment_change;
  usage.allocation_count = now.allocations;
  usage.deallocation_count = now.frees;
  usage.peak_time_ns = time_of(names, now.peak_stamp);
  if (now.peak_operation != 0) usage.peak_operation = path_of(names, now.peak_operation);
  usage.live_at_peak = live_set_at_peak(names, space, now, is_open);
  return usage;
}

/// Cuts the row of all values into stretches of equal length: the shortest power of two that leaves fewer than the limit full.
inline memory_timeline ledger_model::timeline_of(const model_names& names, const space_state& space) const {
  const std::size_t limit = options_.timeline_points < 2 ? 2 : options_.timeline_points - options_.timeline_points % 2;
  std::size_t width = 1;
  while (space.samples.size() / width >= limit) width *= 2;
  memory_timeline line;
  line.events_per_point = static_cast<std::int64_t>(width);
  for (std::size_t first = 0; first < space.samples.size(); first += width) {
    const std::size_t last = std::min(first + width, space.samples.size());
    timeline_point point;
    point.time_ns = time_of(names, space.samples[first].stamp);
    for (std::size_t index = first; index < last; ++index) point.peak = std::max(point.peak, space.samples[index].live);
    point.current = space.samples[last - 1].live;
    line.points.push_back(point);
  }
  return line;
}

inline capacity_shortfall ledger_model::shortfall_of(const model_names& names, const space_state& space,
                                                     std::size_t segment_count) const {
  if (space.shortfalls.empty()) return {};
  const shortfall& noted = space.shortfalls.front();
  std::vector<std::size_t> categories;
  for (const block& live : noted.held) categories.push_back(live.category);
  capacity_shortfall result;
  result.held = live_set_of(names, noted.held, categories, true);
  result.requested = noted.asked.bytes;
  result.core = noted.core;
  if (noted.asked.operation != 0) result.operation = path_of(names, noted.asked.operation);
  result.category = static_cast<category>(noted.asked.category);
  const std::size_t segment = space.first_segment + noted.own_segment;
  if (segment < segment_count) result.segment = static_cast<std::int64_t>(segment);
  result.time_ns = time_of(names, noted.stamp);
  result.free = space.capacity;
  for (const block& live : noted.held) result.free -= live.bytes;
  result.shortfall = noted.asked.bytes - result.free;
  result.remedy = remedy_of(result.held.by_operation, result.shortfall);
  return result;
}

/// By trying: every owner alone, then the largest two, the largest three, ...
inline memprof::vector<owned_bytes> ledger_model::remedy_of(const memprof::vector<owned_bytes>& owners, std::int64_t missing) {
  memprof::vector<owned_bytes> alone;
  for (const owned_bytes& owner : owners) {
    if (owner.bytes >= missing) alone.push_back(owner);
  }
  const auto fewer = [](const owned_bytes& left, const owned_bytes& right) { return left.bytes < right.bytes; };
  if (!alone.empty()) return {*std::min_element(alone.begin(), alone.end(), fewer)};
  for (std::size_t count = 2; count <= owners.size(); ++count) {
    std::int64_t together = 0;
    for (std::size_t index = 0; index < count; ++index) together += owners[index].bytes;
    if (together >= missing) return {owners.begin(), owners.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  return {};
}

inline space_profile ledger_model::space_profile_of(const model_names& names, const space_state& space,
                                                    const memprof::vector<segment>& segments) const {
  space_profile result;
  for (std::size_t index = 0; index < segments.size(); ++index) {
    segment_usage usage;
    if (index >= space.first_segment) usage = usage_of(names, space, index - space.first_segment);
    usage.segment = segments[index].name;
    // The design's formula, with the live bytes at the segment's start.
    const std::int64_t reached = usage.cumulative_current - usage.segment_change + usage.segment_peak;
    if (reached > result.cumulative_peak) {
      result.cumulative_peak = reached;
      result.peak_segment = static_cast<std::int64_t>(index);
      result.peak_time_ns = usage.peak_time_ns;
      result.peak_operation = usage.peak_operation;
      const segment_state& at = space.segments[index - space.first_segment];
      result.live_at_peak = live_set_at_peak(names, space, at, true);
      name_categories(names, space, at, result.live_at_peak.by_operation);
    }
    usage.cumulative_peak = result.cumulative_peak;
    result.segments.push_back(usage);
  }
  std::vector<block> held;
  std::vector<std::size_t> categories;
  for (const auto& [address, ordinal] : space.live) {
    held.push_back(space.blocks[ordinal]);
    categories.push_back(held.back().category);
  }
  result.current_by_category = live_set_of(names, held, categories, true).by_category;
  for (const segment_state& each : space.segments) {
    result.allocations += each.allocated;
    result.deallocations += each.freed;
    result.allocation_count += each.allocations;
    result.deallocation_count += each.frees;
  }
  for (const auto& [address, ordinal] : space.live) result.cumulative_current += space.blocks[ordinal].bytes;
  result.capacity = space.capacity;
  result.capacity_is_per_core = space.capacity_is_per_core;
  result.first_shortfall = shortfall_of(names, space, segments.size());
  result.timeline = timeline_of(names, space);
  result.anomalies = space.anomalies;
  result.anomalies.overlapping_blocks = overlapping_blocks_of(space);
  result.cores = space.cores.build(space.first_segment, segments.size());
  result.reserved = space.reserved.build(space.first_segment, segments.size());
  result.active = space.active.build(space.first_segment, segments.size());
  result.streams = space.streams.build([&](std::uint32_t name) { return text_of(names, name); });
  for (const failure& failed : space.failures) {
    if (result.out_of_memory.size() == detail::out_of_memory_ledger::max_kept) {
      count(result.further_out_of_memory, static_cast<std::uint64_t>(failed.requested));
      continue;
    }
    const std::size_t segment = space.first_segment + failed.own_segment;
    result.out_of_memory.push_back({failed.requested, failed.device_free, failed.live, failed.reserved,
                                    failed.operation == 0 ? "" : path_of(names, failed.operation),
                                    segment < segments.size() ? static_cast<std::int64_t>(segment) : -1,
                                    time_of(names, failed.stamp),
                                    segment < segments.size() ? static_cast<std::int64_t>(segment) : -1});
  }
  return result;
}

/// `made` has the spaces.
inline memory_profile ledger_model::memory_profile_of(const model_names& names, label memory, const profile& made) const {
  const joint_peak& peak = joint_.at(memory);
  memory_profile result;
  result.name = memory == host_memory ? "host" : text_of(names, memory);
  result.cumulative_peak = bounded(peak.bytes);
  detail::int128 current = 0;
  for (const auto& [id, space] : spaces_) {
    if (memory_of_.count(id) == 0 || memory_of_.at(id) != memory) continue;
    current += space.live_bytes;
    result.spaces.push_back({names.spaces[id], 0, 0});
    const auto held = peak.live.find(id);
    if (held == peak.live.end()) continue;
    for (const std::size_t ordinal : held->second) {
      result.spaces.back().bytes += space.blocks[ordinal].bytes;
      ++result.spaces.back().blocks;
    }
  }
  result.cumulative_current = bounded(current);
  const auto greatest_first = [](const owned_bytes& left, const owned_bytes& right) { return left.bytes > right.bytes; };
  std::stable_sort(result.spaces.begin(), result.spaces.end(), greatest_first);
  if (peak.bytes == 0) {
    for (owned_bytes& space : result.spaces) space.blocks = 0;  // there was no peak
    return result;
  }
  result.peak_segment = static_cast<std::int64_t>(peak.segment);
  result.peak_time_ns = time_of(names, peak.stamp);
  result.peak_space = names.spaces[peak.space];
  if (peak.operation != 0) result.peak_operation = path_of(names, peak.operation);
  if (peak.space_count == 1) {  // the peak of the only space that there was yet, whose categories its segment's end fixed
    result.live_at_peak = made.space(result.peak_space).live_at_peak;
    return result;
  }
  live_set& set = result.live_at_peak;
  std::map<std::size_t, std::pair<detail::int128, std::int64_t>> by_operation;
  std::map<std::size_t, std::pair<detail::int128, std::int64_t>> by_category;
  std::vector<block> held;
  for (const auto& [id, ordinals] : peak.live) {
    for (const std::size_t ordinal : ordinals) held.push_back(spaces_.at(id).blocks[ordinal]);
  }
  for (const block& live : held) {
    by_operation[live.operation].first += live.bytes;
    ++by_operation[live.operation].second;
    by_category[live.category].first += live.bytes;
    ++by_category[live.category].second;
  }
  for (const auto& [index, sum] : by_operation)
    set.by_operation.push_back({owner_of(names, index), bounded(sum.first), sum.second});
  for (const auto& [index, sum] : by_category)
    set.by_category.push_back({std::string{detail::category_names[index]}, bounded(sum.first), sum.second});
  std::stable_sort(set.by_operation.begin(), set.by_operation.end(), greatest_first);
  std::stable_sort(set.by_category.begin(), set.by_category.end(), greatest_first);
  set.bytes = bounded(peak.bytes);
  set.blocks = static_cast<std::int64_t>(held.size());
  // The largest blocks do not depend on sums, which may be beyond what a set has room for: hence only those.
  std::stable_sort(held.begin(), held.end(), [](const block& left, const block& right) { return left.bytes > right.bytes; });
  if (held.size() > options_.largest_blocks) held.resize(options_.largest_blocks);
  for (const block& large : held) set.largest_blocks.push_back(live_block_of(names, large));
  return result;
}

inline memprof::vector<operation_profile> ledger_model::operations_of(const model_names& names) const {
  memprof::vector<operation_profile> result;
  for (std::size_t index = 1; index < operations_.size(); ++index) {
    operation_profile shown;
    shown.path = path_of(names, index);
    shown.stands_for_others = operations_[index].name == others_label;
    shown.name = shown.stands_for_others ? "other operations" : text_of(names, operations_[index].name);
    shown.parent = static_cast<std::int64_t>(operations_[index].parent) - 1;
    for (const auto& [id, space] : spaces_) {
      operation_usage usage;
      usage.space = names.spaces[id];
      bool did_anything = false;
      for (std::size_t inner = index; inner < operations_.size(); ++inner) {
        std::size_t ancestor = inner;
        while (ancestor > index) ancestor = operations_[ancestor].parent;
        const auto self = operations_[inner].by_space.find(id);
        if (ancestor != index || self == operations_[inner].by_space.end()) continue;
        did_anything = true;
        usage.allocated += self->second.allocated;
        usage.freed += self->second.freed;
        usage.inferred += self->second.inferred;
        if (inner != index) continue;
        usage.self_allocated = self->second.allocated;
        usage.self_freed = self->second.freed;
        usage.allocation_count = self->second.allocations;
        usage.deallocation_count = self->second.frees;
      }
      if (!did_anything) continue;
      usage.total_delta = usage.allocated - usage.freed;
      usage.self_delta = usage.self_allocated - usage.self_freed;
      bool has_ended_once = false;
      std::map<std::size_t, operation_invocation> by_end;
      for (const std::size_t ordinal : operations_[index].invocations) {
        const invocation& call = invocations_[ordinal];
        const auto found = call.flows.find(id);
        const flow seen = found == call.flows.end() ? flow{} : found->second;
        usage.peak = std::max(usage.peak, seen.greatest);
        usage.self_peak = std::max(usage.self_peak, seen.self_greatest);
        if (!call.has_ended) continue;
        usage.max_delta = has_ended_once ? std::max(usage.max_delta, seen.net) : seen.net;
        has_ended_once = true;
        if (seen.net != 0 || seen.greatest != 0)
          by_end[call.end_order] = {call.thread, time_of(names, call.begin), time_of(names, call.end), seen.net, seen.greatest};
      }
      if (!by_end.empty()) {
        usage.first_invocation = by_end.begin()->second;
        usage.last_invocation = by_end.rbegin()->second;
        usage.largest_invocation = std::max_element(by_end.begin(), by_end.end(), [](const auto& left, const auto& right) {
                                     return left.second.peak < right.second.peak;
                                   })->second;
      }
      for (const auto& [address, ordinal] : space.live) {
        if (space.blocks[ordinal].operation == index) usage.live += space.blocks[ordinal].bytes;
      }
      shown.usage.push_back(usage);
    }
    shown.invocations = static_cast<std::int64_t>(operations_[index].invocations.size());
    result.push_back(shown);
  }
  return result;
}

inline profile ledger_model::build(const model_names& names, bool is_complete, const std::string& library_version) const {
  profile result;
  result.library_version = library_version;
  result.complete = is_complete;
  result.exact = rejected_ == 0;
  for (const mark& ended : marks_) {
    result.segments.push_back({text_of(names, ended.name), time_of(names, ended.begin), time_of(names, ended.end)});
  }
  if (!is_complete) {
    result.segments.push_back({"OPEN_SEGMENT", time_of(names, segment_begin_), time_of(names, stamp_)});
  }
  for (const auto& [id, space] : spaces_) {
    result.spaces.push_back(space_profile_of(names, space, result.segments));
    result.spaces.back().name = names.spaces[id];
  }
  for (const label memory : shared_memories()) result.memories.push_back(memory_profile_of(names, memory, result));
  result.operations = operations_of(names);
  result.anomalies.rejected_events = rejected_;
  result.anomalies.unbalanced_scopes = unbalanced_;
  result.anomalies.too_deep_scopes = too_deep_;
  for (const operation_profile& shown : result.operations) {
    if (shown.stands_for_others) result.anomalies.other_operations += shown.invocations;
  }
  return result;
}

}  // namespace memprof::property
