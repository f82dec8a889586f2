#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>
#include <property/active_model.hpp>
#include <property/core_model.hpp>
#include <property/reserved_model.hpp>
#include <property/stream_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// What the ids of a sequence mean; the model has no table of labels.
struct model_names {
  std::vector<std::string> labels;  ///< label n is labels[n - 1]
  std::vector<std::string> spaces;
  std::uint64_t first_stamp = 0;
  double ns_per_stamp = 1.0;
};

/// The ledger and the profile once more, from their definitions and without any cleverness: it keeps every block, every
/// invocation and every value of live bytes, copies the live set at each new peak, and adds up at the end.
class ledger_model {
 public:
  ledger_model(const ledger_options& options, std::uint64_t begin_stamp)
      : options_(options), stamp_(begin_stamp), segment_begin_(begin_stamp) {}

  void apply(std::uint32_t thread, const event& recorded) {
    if (thread >= 1U << 20) {
      ++rejected_;
      return;
    }
    threads_.try_emplace(thread, thread);
    stamp_ = std::max(stamp_, recorded.stamp);
    switch (recorded.kind) {
      case event_kind::allocate: allocate(thread, recorded); break;
      case event_kind::deallocate: deallocate(thread, recorded); break;
      case event_kind::use: break;
      case event_kind::annotate: annotate(recorded); break;
      case event_kind::scope_begin: begin_scope(thread, recorded); break;
      case event_kind::scope_end: end_scope(thread, recorded); break;
      case event_kind::thread_begin: begin_thread(thread, recorded); break;
      case event_kind::allocate_on_cores: allocate_on_cores(thread, recorded); break;
      case event_kind::deallocate_on_cores: deallocate_on_cores(thread, recorded); break;
      case event_kind::deallocate_circular_buffers: deallocate_circular_buffers(thread, recorded); break;
      case event_kind::reserve:
      case event_kind::release: change_reserved(recorded); break;
      case event_kind::allocate_on_stream: allocate_on_stream(thread, recorded); break;
      case event_kind::deallocate_on_stream: deallocate_on_stream(thread, recorded); break;
      case event_kind::out_of_memory: out_of_memory(thread, recorded); break;
      case event_kind::complete_deallocation: complete_deallocation(recorded); break;
      case event_kind::deallocate_range: deallocate_range(thread, recorded); break;
      default: ++rejected_; break;
    }
    note_joint_peaks(thread, recorded);
  }

  void end_segment(std::uint32_t name, std::uint64_t stamp) {
    stamp_ = std::max(stamp_, stamp);
    marks_.push_back({name, segment_begin_, stamp_});
    segment_begin_ = stamp_;
    for (auto& [id, space] : spaces_) {
      space.segments.back().categories = categories_of(space, space.segments.back());
      space.segments.push_back(starting(space, stamp_));
      space.cores.end_segment();
      space.reserved.end_segment();
      space.active.end_segment();
    }
  }

  /// Before the first event of the space.
  void limit(unsigned space, std::int64_t capacity, bool is_per_core) {
    capacities_[space] = capacity;
    if (is_per_core && capacity != 0) limited_cores_.insert(space);
  }
  /// Likewise: in which memory it lies; 0: one of its own.
  void place(unsigned space, label memory) {
    if (memory != 0) memory_of_[space] = memory;
  }

  /// With all its segments, which have no numbers yet.
  [[nodiscard]] profile build(const model_names& names, bool is_complete, const std::string& library_version) const;
  /// When a block came and went; segments are counted from 0, and moments are in the order of what happened.
  struct life {
    std::int64_t bytes;
    std::size_t operation;
    std::size_t born_segment;
    std::uint64_t born_stamp;
    std::size_t born_moment;
    bool is_over = false;
    std::size_t end_segment = 0;
    std::uint64_t end_stamp = 0;
    std::size_t end_moment = 0;
    std::size_t blocks_until_end = 0;  ///< how many blocks its space had had when it went
  };
  /// Of all blocks by memory space, in the order of their allocation.
  [[nodiscard]] std::map<unsigned, std::vector<life>> lives() const {
    std::map<unsigned, std::vector<life>> result;
    for (const auto& [id, space] : spaces_) result[id] = space.lives;
    return result;
  }
  /// The path of an operation as a profile spells it; empty for 0.
  [[nodiscard]] std::string operation_path(const model_names& names, std::size_t index) const { return owner_of(names, index); }
  /// The labels of the finished segments.
  [[nodiscard]] std::vector<std::uint32_t> segment_labels() const {
    std::vector<std::uint32_t> result;
    for (const mark& ended : marks_) result.push_back(ended.name);
    return result;
  }
  /// The greatest sum of each segment for each memory of several spaces, in the order of the profile.
  [[nodiscard]] std::vector<std::vector<detail::int128>> joint_peaks() const {
    std::vector<std::vector<detail::int128>> result;
    for (const label memory : shared_memories()) {
      result.push_back(joint_.at(memory).segments);
      result.back().resize(marks_.size() + 1);
    }
    return result;
  }
  /// How long the finished segments took, in stamps.
  [[nodiscard]] std::vector<std::int64_t> durations() const {
    std::vector<std::int64_t> result;
    for (const mark& ended : marks_) result.push_back(static_cast<std::int64_t>(ended.end - ended.begin));
    return result;
  }

 private:
  static constexpr std::uint32_t others_label = 0xFFFFFF;  // the label of all names that are too many

  struct block {
    std::uint64_t address;
    std::int64_t bytes;
    std::uint32_t thread;
    std::size_t operation;
    std::size_t category;
    std::uint32_t annotation;
  };
  struct segment_state {
    std::int64_t start = 0;
    std::int64_t allocated = 0, freed = 0, allocations = 0, frees = 0;
    std::int64_t peak = 0;
    std::uint64_t peak_stamp = 0;
    std::size_t peak_operation = 0;
    std::vector<std::size_t> at_peak;     // ordinals of the blocks
    std::vector<std::size_t> categories;  // theirs, when the segment ended
  };
  struct shortfall {
    block asked{};
    std::size_t own_segment = 0;
    std::uint64_t stamp = 0;
    std::vector<block> held;  // the live blocks beside it, as they were then, in order of allocation
    std::string core;         // of a capacity of each core: the bytes are those on this one
  };
  struct failure {
    std::int64_t requested, device_free, live, reserved;
    std::uint64_t stamp;
    std::size_t own_segment, operation;
  };
  struct sample {
    std::uint64_t stamp;
    std::int64_t live;
  };
  struct space_state {
    std::size_t first_segment;
    std::vector<block> blocks;                  // all that ever were, in order of allocation
    std::vector<life> lives;                    // theirs
    std::map<std::uint64_t, std::size_t> live;  // by address
    std::int64_t allocated = 0;
    std::int64_t live_bytes = 0;
    std::vector<segment_state> segments;  // the last one is open
    std::vector<sample> samples;
    std::int64_t capacity = 0;
    bool capacity_is_per_core = false;
    std::vector<shortfall> shortfalls;  // the first one, if there was any
    space_anomalies anomalies;
    core_model cores;
    reserved_model reserved;
    stream_model streams;
    active_model active;
    std::vector<failure> failures;  // all of them
  };
  struct flow {
    std::int64_t net = 0, greatest = 0, self_net = 0, self_greatest = 0;
  };
  struct invocation {
    std::size_t operation;
    std::uint32_t name;
    std::uint32_t number;
    unsigned tag;
    bool has_ended = false;
    std::map<unsigned, flow> flows;
    std::uint32_t thread = 0;
    std::uint64_t begin = 0, end = 0;
    std::size_t end_order = 0;
    // Perhaps not an invocation but an adoption: of the operation with that number on the thread of that number, in that ring; in
    // none if it had ended.
    bool is_adopted = false;
    std::uint32_t adopted = 0;
    std::optional<std::uint32_t> leader = {};
    std::uint32_t leader_thread = 0;
    int leader_era = 0;
  };
  struct self_totals {
    std::int64_t allocated = 0, freed = 0, allocations = 0, frees = 0, inferred = 0;
  };
  struct operation {
    std::size_t parent;
    std::uint32_t name;
    std::map<unsigned, self_totals> by_space;
    std::vector<std::size_t> invocations;
  };
  struct mark {
    std::uint32_t name;
    std::uint64_t begin, end;
  };

  /// The greatest sum over the spaces of a memory, and what was live in each of them then.
  struct joint_peak {
    detail::int128 bytes = 0;
    std::uint64_t stamp = 0;
    std::size_t segment = 0;
    unsigned space = 0;
    std::size_t operation = 0;
    std::size_t space_count = 0;  // how many there were then
    std::map<unsigned, std::vector<std::size_t>> live;
    std::vector<detail::int128> segments;
  };

  // --- events -------------------------------------------------------------------------------------------------------

  /// Adds up what the spaces of each memory hold, after every event.
  void note_joint_peaks(std::uint32_t thread, const event& recorded) {
    std::map<label, detail::int128> sums;
    for (const auto& [id, space] : spaces_) {
      if (memory_of_.count(id) != 0) sums[memory_of_.at(id)] += space.live_bytes;
    }
    for (const auto& [memory, sum] : sums) {
      joint_peak& known = joint_[memory];
      known.segments.resize(marks_.size() + 1);
      known.segments.back() = std::max(known.segments.back(), sum);
      if (sum <= known.bytes) continue;
      known.bytes = sum;
      known.stamp = stamp_;
      known.segment = marks_.size();
      known.space = recorded.space;
      known.operation = operation_of(thread);
      known.live.clear();
      for (const auto& [id, space] : spaces_) {
        if (memory_of_.count(id) != 0 && memory_of_.at(id) == memory) known.live[id] = ordinals_of_live(space);
      }
      known.space_count = known.live.size();
    }
  }

  /// Those in which several spaces showed up: the host's first.
  [[nodiscard]] std::vector<label> shared_memories() const {
    std::map<label, int> counts;
    for (const auto& [id, space] : spaces_) {
      if (memory_of_.count(id) != 0) ++counts[memory_of_.at(id)];
    }
    std::vector<label> result;
    if (counts[host_memory] > 1) result.push_back(host_memory);
    for (const auto& [memory, count] : counts) {
      if (memory != host_memory && count > 1) result.push_back(memory);
    }
    return result;
  }

  void allocate(std::uint32_t thread, const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    if (recorded.address == 0) {
      count(space.anomalies.null_allocations, recorded.bytes);
      return;
    }
    if (recorded.bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - space.allocated)) {
      ++rejected_;
      return;
    }
    if (const auto older = space.live.find(recorded.address); older != space.live.end()) {
      count(space.anomalies.replaced_allocations, static_cast<std::uint64_t>(space.blocks[older->second].bytes));
      release(thread, recorded.space, recorded.address);
    }
    const auto bytes = static_cast<std::int64_t>(recorded.bytes);
    const unsigned tag = recorded.tag >= 1 && recorded.tag <= 8 ? recorded.tag : tag_of(thread);
    space.live[recorded.address] = space.blocks.size();
    space.blocks.push_back({recorded.address, bytes, threads_.at(thread), operation_of(thread), tag == 0 ? 0 : tag - 1, 0});
    space.lives.push_back({bytes, operation_of(thread), marks_.size(), stamp_, ++moment_});
    note_shortfall(space);
    space.allocated += bytes;
    space.live_bytes += bytes;
    segment_state& now = space.segments.back();
    now.allocated += bytes;
    ++now.allocations;
    if (space.live_bytes > now.peak) {
      now.peak = space.live_bytes;
      now.peak_stamp = stamp_;
      now.peak_operation = operation_of(thread);
      now.at_peak = ordinals_of_live(space);
    }
    space.samples.push_back({stamp_, space.live_bytes});
    self_totals& self = operations_[operation_of(thread)].by_space[recorded.space];
    self.allocated += bytes;
    ++self.allocations;
    if (works_for(thread) != thread && !open_[works_for(thread)].empty()) self.inferred += bytes;
    flows(thread, recorded.space, bytes);
  }

  /// The last block has just come. Adds up all that is live, at every allocation.
  void note_shortfall(space_state& space) const {
    if (space.capacity == 0 || space.capacity_is_per_core || !space.shortfalls.empty()) return;
    shortfall noted{space.blocks.back(), space.segments.size() - 1, stamp_, {}, {}};
    std::int64_t total = noted.asked.bytes;
    for (const std::size_t ordinal : ordinals_of_live(space)) {
      if (ordinal + 1 == space.blocks.size()) continue;
      noted.held.push_back(space.blocks[ordinal]);
      total += space.blocks[ordinal].bytes;
    }
    if (total > space.capacity) space.shortfalls.push_back(noted);
  }

  /// A block on cores has just come. Adds up all that lies on each of its cores.
  void note_shortfall_on_cores(space_state& space, std::uint64_t address, core_rectangle cores) const {
    if (space.capacity == 0 || !space.capacity_is_per_core || !space.shortfalls.empty()) return;
    std::int64_t most = space.capacity;
    for (std::uint32_t y = cores.top(); y <= cores.bottom(); ++y) {
      for (std::uint32_t x = cores.left(); x <= cores.right(); ++x) {
        std::int64_t total = 0;
        for (const auto& [where, live] : space.cores.blocks_on(x, y)) total += live.bytes;
        if (total <= most) continue;
        most = total;
        space.shortfalls = {shortfall_on(space, address, x, y)};
      }
    }
  }

  /// What a core holds, the block at `address` apart.
  [[nodiscard]] shortfall shortfall_on(const space_state& space, std::uint64_t address, std::uint32_t x, std::uint32_t y) const {
    shortfall noted{{}, space.segments.size() - 1, stamp_, {}, std::to_string(x) + "-" + std::to_string(y)};
    std::map<std::size_t, block> by_ordinal;
    for (const auto& [where, live] : space.cores.blocks_on(x, y)) {
      const auto found = space.live.find(where);
      const bool is_known = found != space.live.end() && found->second == live.ordinal;
      block part = is_known ? space.blocks[live.ordinal] : block{where, 0, 0, 0, 0, 0};
      part.bytes = live.bytes;
      if (where == address) {
        noted.asked = part;
      } else {
        by_ordinal[live.ordinal] = part;
      }
    }
    for (const auto& [ordinal, part] : by_ordinal) noted.held.push_back(part);
    return noted;
  }

  void deallocate(std::uint32_t thread, const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    if (const auto found = space.live.find(recorded.address); found == space.live.end()) {
      if (recorded.address != 0) count(space.anomalies.unmatched_frees, recorded.bytes);
    } else {
      const block& freed = space.blocks[found->second];
      const auto bytes = static_cast<std::uint64_t>(freed.bytes);
      if (recorded.bytes != 0 && recorded.bytes != bytes) {
        count(space.anomalies.mismatched_sizes, std::max(recorded.bytes, bytes) - std::min(recorded.bytes, bytes));
      }
      if (freed.thread != threads_.at(thread)) count(space.anomalies.cross_thread_frees, bytes);
      release(thread, recorded.space, recorded.address);
    }
    space.samples.push_back({stamp_, space.live_bytes});
  }

  /// Whether the event names a space, a rectangle, and a number of bytes that fits all its cores together.
  [[nodiscard]] static bool is_possible(const event& recorded) {
    const core_rectangle cores{recorded.label};
    return recorded.space != any_space && cores.is_possible() &&
           (recorded.bytes == 0 || std::numeric_limits<std::uint64_t>::max() / recorded.bytes >= cores.size());
  }

  void allocate_on_cores(std::uint32_t thread, const event& recorded) {
    const unsigned kind = recorded.tag / 256U;
    event whole = recorded;
    whole.bytes = recorded.bytes * core_rectangle{recorded.label}.size();
    whole.tag = recorded.tag % 256U;
    if (kind > 1 || recorded.address == 0 || !is_possible(recorded)) {
      ++rejected_;
      return;
    }
    const std::int64_t rejected_before = rejected_;
    allocate(thread, whole);
    if (rejected_ != rejected_before) return;
    space_state& space = space_of(recorded.space);
    space.cores.allocate(recorded.address,
                         {static_cast<std::int64_t>(recorded.bytes), {recorded.label}, kind == 1, space.blocks.size() - 1});
    note_shortfall_on_cores(space, recorded.address, {recorded.label});
  }

  void deallocate_on_cores(std::uint32_t thread, const event& recorded) {
    if (!is_possible(recorded)) {
      ++rejected_;
      return;
    }
    event whole = recorded;
    whole.bytes = recorded.bytes * core_rectangle{recorded.label}.size();
    deallocate(thread, whole);
    space_of(recorded.space).cores.deallocate(recorded.address);
  }

  void deallocate_circular_buffers(std::uint32_t thread, const event& recorded) {
    if (recorded.space == any_space || !core_rectangle{recorded.label}.is_possible()) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    for (const std::uint64_t address : space.cores.deallocate_circular_buffers({recorded.label})) {
      const auto found = space.live.find(address);
      if (found == space.live.end()) continue;
      const block& freed = space.blocks[found->second];
      if (freed.thread != threads_.at(thread)) count(space.anomalies.cross_thread_frees, static_cast<std::uint64_t>(freed.bytes));
      release(thread, recorded.space, address);
    }
    space.samples.push_back({stamp_, space.live_bytes});
  }

  /// Looks at every address that lives.
  void deallocate_range(std::uint32_t thread, const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    const std::map<std::uint64_t, std::size_t> before = space.live;
    for (const auto& [address, ordinal] : before) {
      const bool is_behind = address >= recorded.address && (address - recorded.address) < recorded.bytes;
      if (recorded.tag == 0 && !is_behind) continue;
      const block& freed = space.blocks[ordinal];
      if (freed.thread != threads_.at(thread)) count(space.anomalies.cross_thread_frees, static_cast<std::uint64_t>(freed.bytes));
      space.cores.deallocate(address);
      release(thread, recorded.space, address);
    }
    space.samples.push_back({stamp_, space.live_bytes});
  }

  void change_reserved(const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    const std::int64_t before = space.reserved.current();
    if (recorded.kind == event_kind::release) {
      space.reserved.release(recorded.address, recorded.bytes);
    } else if (!space.reserved.reserve(recorded.address, recorded.bytes)) {
      ++rejected_;
    }
    space.streams.change_reserved(recorded.label, space.reserved.current() - before);
  }

  [[nodiscard]] static std::int64_t live_bytes_at(const space_state& space, std::uint64_t address) {
    const auto found = space.live.find(address);
    return found == space.live.end() ? 0 : space.blocks[found->second].bytes;
  }

  void allocate_on_stream(std::uint32_t thread, const event& recorded) {
    const std::int64_t rejected_before = rejected_;
    const std::int64_t replaced = recorded.space == any_space ? 0 : live_bytes_at(space_of(recorded.space), recorded.address);
    allocate(thread, recorded);
    if (rejected_ != rejected_before || recorded.address == 0) return;
    space_of(recorded.space).streams.deallocate(recorded.label, replaced);
    space_of(recorded.space).streams.allocate(recorded.label, static_cast<std::int64_t>(recorded.bytes));
    space_of(recorded.space).active.allocate(recorded.address, static_cast<std::int64_t>(recorded.bytes), replaced);
  }

  void deallocate_on_stream(std::uint32_t thread, const event& recorded) {
    if (recorded.space != any_space) {
      space_state& space = space_of(recorded.space);
      const std::int64_t bytes = live_bytes_at(space, recorded.address);
      space.streams.deallocate(recorded.label, bytes);
      if (recorded.tag == 0) {
        space.active.deallocate(bytes);
      } else {
        space.active.request(recorded.address, bytes, space.live.count(recorded.address) != 0);
      }
    }
    deallocate(thread, recorded);
  }

  void complete_deallocation(const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
    } else {
      space_of(recorded.space).active.complete(recorded.address, recorded.bytes);
    }
  }

  void out_of_memory(std::uint32_t thread, const event& recorded) {
    if (recorded.space == any_space) {
      ++rejected_;
      return;
    }
    space_state& space = space_of(recorded.space);
    if (static_cast<std::int64_t>(recorded.bytes) < 0 || static_cast<std::int64_t>(recorded.address) < 0) {
      ++rejected_;
      return;
    }
    space.failures.push_back({static_cast<std::int64_t>(recorded.bytes), static_cast<std::int64_t>(recorded.address),
                              space.live_bytes, space.reserved.current(), stamp_, space.segments.size() - 1,
                              operation_of(thread)});
  }

  void release(std::uint32_t thread, unsigned id, std::uint64_t address) {
    space_state& space = spaces_.at(id);
    const std::int64_t bytes = space.blocks[space.live.at(address)].bytes;
    life& over = space.lives[space.live.at(address)];
    over.is_over = true;
    over.end_segment = marks_.size();
    over.end_stamp = stamp_;
    over.end_moment = ++moment_;
    over.blocks_until_end = space.blocks.size();
    space.live.erase(address);
    space.live_bytes -= bytes;
    space.segments.back().freed += bytes;
    ++space.segments.back().frees;
    self_totals& self = operations_[operation_of(thread)].by_space[id];
    self.freed += bytes;
    ++self.frees;
    flows(thread, id, -bytes);
  }

  void annotate(const event& recorded) {
    space_state* const asked = recorded.tag > 8 ? nullptr : annotated_space(recorded);
    if (asked == nullptr) {
      ++rejected_;
      return;
    }
    space_state& space = *asked;
    const auto found = space.live.find(recorded.address);
    if (found == space.live.end()) {
      count(space.anomalies.unknown_annotations, 0);
      return;
    }
    block& named = space.blocks[found->second];
    if (recorded.label != 0) named.annotation = recorded.label;
    if (recorded.tag != 0) named.category = recorded.tag - 1U;
  }

  /// The space that has the block; `any_space` is satisfied with the first one that has it, else with the first there is, else
  /// with a new one, `cpu`.
  [[nodiscard]] space_state* annotated_space(const event& recorded) {
    if (recorded.space != any_space) return spaces_.count(recorded.space) == 0 ? nullptr : &spaces_.at(recorded.space);
    for (auto& [id, space] : spaces_) {
      if (space.live.count(recorded.address) != 0) return &space;
    }
    return spaces_.empty() ? &space_of(0) : &spaces_.begin()->second;
  }

  void begin_scope(std::uint32_t ring, const event& recorded) {
    const auto number = static_cast<std::uint32_t>(recorded.address & 0xFFFFFFFFU);
    const auto outer = static_cast<std::uint32_t>(recorded.address >> 32U);
    if (number == 0) {
      ++rejected_;
      return;
    }
    std::vector<std::size_t>& open = open_[ring];
    // What is still open within the one that the thread takes for its innermost has ended unseen.
    const auto is_outer = [&](std::size_t index) { return invocations_[index].number == outer; };
    if (outer == 0 || std::any_of(open.begin(), open.end(), is_outer)) {
      for (; !open.empty() && (outer == 0 || !is_outer(open.back())); ++unbalanced_) close_innermost(ring);
    }
    if (open.size() == 256) {
      ++unfollowed_[ring];
      ++too_deep_;
      return;
    }
    if (recorded.bytes != 0) {
      adopt(ring, number, recorded);
      return;
    }
    const unsigned tag = recorded.tag >= 1 && recorded.tag <= 8 ? recorded.tag : open.empty() ? 0 : invocations_[open.back()].tag;
    const std::size_t called = child(open.empty() ? 0 : invocations_[open.back()].operation, recorded.label);
    operations_[called].invocations.push_back(invocations_.size());
    open.push_back(invocations_.size());
    invocations_.push_back({called, recorded.label, number, tag, false, {}, threads_.at(ring), stamp_});
  }

  void adopt(std::uint32_t ring, std::uint32_t number, const event& recorded) {
    const auto adopted = static_cast<std::uint32_t>(recorded.bytes & 0xFFFFFFFFU);
    const auto thread = static_cast<std::uint32_t>(recorded.bytes >> 32U);
    invocation added{0, recorded.label, number, 0, false, {}, threads_.at(ring), stamp_};
    added.is_adopted = true;
    added.adopted = adopted;
    const auto owner = std::find_if(threads_.begin(), threads_.end(), [&](const auto& each) { return each.second == thread; });
    const invocation* named = nullptr;
    if (owner != threads_.end()) {
      for (const std::size_t index : open_[owner->first]) {
        if (invocations_[index].number == adopted) named = &invocations_[index];
      }
    }
    if (named != nullptr) {
      added.operation = named->operation;
      added.tag = named->tag;
      added.leader = named->is_adopted ? named->leader : owner->first;
      added.leader_thread = named->is_adopted ? named->leader_thread : thread;
      added.leader_era = named->is_adopted ? named->leader_era : eras_[owner->first];
      if (named->is_adopted) added.adopted = named->adopted;
    } else if (recorded.label != 0) {
      std::vector<std::size_t> of_that_name;
      for (std::size_t index = 1; index < operations_.size(); ++index) {
        if (operations_[index].name == recorded.label) of_that_name.push_back(index);
      }
      added.operation = of_that_name.size() == 1 ? of_that_name[0] : child(0, recorded.label);
    }
    open_[ring].push_back(invocations_.size());
    invocations_.push_back(added);
  }

  void end_scope(std::uint32_t ring, const event& recorded) {
    const auto number = static_cast<std::uint32_t>(recorded.address & 0xFFFFFFFFU);
    const auto thread = static_cast<std::uint32_t>(recorded.address >> 32U);
    if (thread != 0) {
      const auto owner = std::find_if(threads_.begin(), threads_.end(), [&](const auto& each) { return each.second == thread; });
      if (owner == threads_.end()) return;
      ring = owner->first;
    }
    std::vector<std::size_t>& open = open_[ring];
    const auto found =
        std::find_if(open.rbegin(), open.rend(), [&](std::size_t index) { return invocations_[index].number == number; });
    if (found != open.rend() && invocations_[*found].name == recorded.label) {
      end_invocation(*found);
      open.erase(std::next(found).base());
      if (open.empty()) ++eras_[ring];
    } else if (unfollowed_[ring] != 0) {
      --unfollowed_[ring];
    } else {
      ++unbalanced_;
    }
  }

  void close_innermost(std::uint32_t ring) {
    end_invocation(open_[ring].back());
    open_[ring].pop_back();
    if (open_[ring].empty()) ++eras_[ring];
  }

  void end_invocation(std::size_t index) {
    invocations_[index].has_ended = true;
    invocations_[index].end = stamp_;
    invocations_[index].end_order = ended_++;
  }

  void begin_thread(std::uint32_t ring, const event& recorded) {
    while (!open_[ring].empty()) close_innermost(ring);
    unfollowed_[ring] = 0;
    threads_[ring] = static_cast<std::uint32_t>(std::min<std::uint64_t>(recorded.address, (1U << 20) - 1));
    if (leader_ == ring) {
      leader_.reset();
      leader_is_gone_ = true;
    } else if (options_.leading_thread != 0 && !leader_ && !leader_is_gone_ && recorded.bytes == options_.leading_thread) {
      leader_ = ring;
    }
  }

  /// The thread for whose operation another one works.
  [[nodiscard]] std::uint32_t works_for(std::uint32_t thread) { return leader_ && open_[thread].empty() ? *leader_ : thread; }

  /// Every open scope around what the thread does sees the bytes, the innermost also as its own. From an adoption it goes on at
  /// the adopted operation, or else at the innermost one that was open before that.
  void flows(std::uint32_t thread, unsigned space, std::int64_t bytes) {
    std::uint32_t ring = works_for(thread);
    std::size_t left = open_[ring].size();
    bool is_self = true;
    for (int step = 0; left != 0 && step < 512; ++step) {
      invocation& around = invocations_[open_[ring][left - 1]];
      if (around.is_adopted) {
        if (!around.leader || threads_.at(*around.leader) != around.leader_thread) return;
        if (eras_[*around.leader] != around.leader_era) return;  // all operations of that time have ended
        ring = *around.leader;
        left = open_[ring].size();
        while (left != 0 && invocations_[open_[ring][left - 1]].number > around.adopted) --left;
        is_self = is_self && left != 0 && invocations_[open_[ring][left - 1]].number == around.adopted;
        continue;
      }
      flow& seen = around.flows[space];
      seen.net += bytes;
      seen.greatest = std::max(seen.greatest, seen.net);
      if (is_self) {
        seen.self_net += bytes;
        seen.self_greatest = std::max(seen.self_greatest, seen.self_net);
      }
      is_self = false;
      --left;
    }
  }

  // --- state --------------------------------------------------------------------------------------------------------

  [[nodiscard]] space_state& space_of(unsigned id) {
    const auto found = spaces_.find(id);
    if (found != spaces_.end()) return found->second;
    space_state& space = spaces_[id];
    space.first_segment = marks_.size();
    space.capacity = capacities_[id];
    space.capacity_is_per_core = limited_cores_.count(id) != 0;
    space.segments.push_back(starting(space, segment_begin_));
    return space;
  }

  [[nodiscard]] static segment_state starting(const space_state& space, std::uint64_t stamp) {
    segment_state begun;
    begun.start = begun.peak = space.live_bytes;
    begun.peak_stamp = stamp;
    begun.at_peak = ordinals_of_live(space);
    return begun;
  }

  [[nodiscard]] static std::vector<std::size_t> ordinals_of_live(const space_state& space) {
    std::vector<std::size_t> ordinals;
    for (const auto& [address, ordinal] : space.live) ordinals.push_back(ordinal);
    std::sort(ordinals.begin(), ordinals.end());
    return ordinals;
  }

  /// The greatest number there is stands for all beyond it.
  [[nodiscard]] static std::int64_t bounded(detail::int128 bytes) {
    return static_cast<std::int64_t>(std::min<detail::int128>(bytes, std::numeric_limits<std::int64_t>::max()));
  }

  [[nodiscard]] static std::vector<std::size_t> categories_of(const space_state& space, const segment_state& now) {
    std::vector<std::size_t> categories;
    for (const std::size_t ordinal : now.at_peak) categories.push_back(space.blocks[ordinal].category);
    return categories;
  }

  /// Every live block against every other one; those on cores have other upper bits.
  [[nodiscard]] static event_tally overlapping_blocks_of(const space_state& space) {
    event_tally found;
    for (const auto& [begin, ordinal] : space.live) {
      const std::uint64_t end = begin + static_cast<std::uint64_t>(space.blocks[ordinal].bytes);
      std::uint64_t shared = 0;
      for (const auto& [other_begin, other] : space.live) {
        const std::uint64_t other_end = other_begin + static_cast<std::uint64_t>(space.blocks[other].bytes);
        if (begin >> 48 == 0 && other_begin >> 48 == 0 && other_begin < begin && begin < other_end && begin != end) {
          shared = std::max(shared, std::min(end, other_end) - begin);
        }
      }
      if (shared != 0) count(found, shared);
    }
    return found;
  }

  [[nodiscard]] unsigned tag_of(std::uint32_t thread) {
    const std::vector<std::size_t>& open = open_[works_for(thread)];
    return open.empty() ? 0 : invocations_[open.back()].tag;
  }
  [[nodiscard]] std::size_t operation_of(std::uint32_t thread) {
    const std::vector<std::size_t>& open = open_[works_for(thread)];
    return open.empty() ? 0 : invocations_[open.back()].operation;
  }

  /// Beyond the limit all are one operation within each, and within that there is no other.
  [[nodiscard]] std::size_t child(std::size_t parent, std::uint32_t name) {
    for (std::size_t index = 1; index < operations_.size(); ++index) {
      if (operations_[index].parent == parent && operations_[index].name == name) return index;
    }
    if (operations_.size() > options_.operations || name == others_label) {
      if (parent != 0 && operations_[parent].name == others_label) return parent;
      if (name != others_label) return child(parent, others_label);
    }
    operations_.push_back({parent, name, {}, {}});
    return operations_.size() - 1;
  }

  /// Adds to a tally that stops at the greatest value, since what a caller tells may be anything.
  static void count(event_tally& tally, std::uint64_t bytes) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    ++tally.count;
    const auto before = static_cast<std::uint64_t>(tally.bytes);
    tally.bytes = static_cast<std::int64_t>(bytes > most - before ? most : before + bytes);
  }

  // --- the profile (ledger_model_profile.hpp) -----------------------------------------------------------------------

  [[nodiscard]] static std::string text_of(const model_names& names, std::uint32_t label) {
    return label == 0 || label > names.labels.size() ? std::string{} : names.labels[label - 1];
  }
  [[nodiscard]] static std::int64_t time_of(const model_names& names, std::uint64_t stamp) {
    return stamp <= names.first_stamp
               ? 0
               : static_cast<std::int64_t>(static_cast<double>(stamp - names.first_stamp) * names.ns_per_stamp);
  }
  [[nodiscard]] std::string path_of(const model_names& names, std::size_t index) const;
  [[nodiscard]] std::string owner_of(const model_names& names, std::size_t index) const {
    return index == 0 ? "" : path_of(names, index);
  }
  [[nodiscard]] live_set live_set_at_peak(const model_names& names, const space_state& space, const segment_state& now,
                                          bool has_all_owners) const;
  [[nodiscard]] live_set live_set_of(const model_names& names, const std::vector<block>& held,
                                     const std::vector<std::size_t>& categories, bool has_all_owners) const;
  void name_categories(const model_names& names, const space_state& space, const segment_state& at,
                       memprof::vector<owned_bytes>& rows) const;
  [[nodiscard]] live_block live_block_of(const model_names& names, const block& shown) const;
  [[nodiscard]] static memprof::vector<owned_bytes> remedy_of(const memprof::vector<owned_bytes>& owners, std::int64_t missing);
  [[nodiscard]] capacity_shortfall shortfall_of(const model_names& names, const space_state& space,
                                                std::size_t segment_count) const;
  [[nodiscard]] segment_usage usage_of(const model_names& names, const space_state& space, std::size_t own_index) const;
  [[nodiscard]] memory_timeline timeline_of(const model_names& names, const space_state& space) const;
  [[nodiscard]] space_profile space_profile_of(const model_names& names, const space_state& space,
                                               const memprof::vector<segment>& segments) const;
  [[nodiscard]] memory_profile memory_profile_of(const model_names& names, label memory, const profile& made) const;
  [[nodiscard]] memprof::vector<operation_profile> operations_of(const model_names& names) const;

  ledger_options options_;
  std::uint64_t stamp_;
  std::size_t moment_ = 0;
  std::uint64_t segment_begin_;
  std::vector<mark> marks_;
  std::map<unsigned, std::int64_t> capacities_;
  std::map<unsigned, label> memory_of_;
  std::map<label, joint_peak> joint_;
  std::set<unsigned> limited_cores_;  // spaces whose capacity is that of each core
  std::map<unsigned, space_state> spaces_;
  std::vector<operation> operations_{{0, 0, {}, {}}};  // 0 is "no operation"
  std::vector<invocation> invocations_;
  std::map<std::uint32_t, std::uint32_t> threads_;          // by ring: number of the thread
  std::map<std::uint32_t, std::int64_t> unfollowed_;        // by ring: open, but too deep
  std::map<std::uint32_t, std::vector<std::size_t>> open_;  // by ring: its open invocations
  std::map<std::uint32_t, int> eras_;                       // by ring: how often all of its operations had ended
  std::optional<std::uint32_t> leader_;                     // ring of the thread for which others work
  bool leader_is_gone_ = false;
  std::int64_t rejected_ = 0;
  std::int64_t unbalanced_ = 0, too_deep_ = 0;
  std::size_t ended_ = 0;  // invocations
};

}  // namespace memprof::property
