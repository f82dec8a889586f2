#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if/scenario.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// Changes of when blocks are live: made again in the backward pass, kept elsewhere meanwhile, or freed earlier.

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Never freed and without a category, such as the workspace of a product that its library keeps for the next one: no change of
/// the program moves it.
bool is_unknown_state(const history_block& block) { return block.category == category::other && block.end == never_freed; }

/// The outermost calls of an owner, and what was allocated in each.
class owner_calls {
 public:
  owner_calls(const block_history& run, std::string_view owner) : run_{run}, of_call_(run.calls.size()) {
    if (run.calls.empty()) raise("recomputing and offloading need a history that was read with its calls");
    const std::vector<bool> operations = operations_of(run, owner);
    if (operations[0])
      raise("what was allocated outside every operation has no call whose end would be known; name an operation");
    for (std::uint32_t call = 1; call < run.calls.size(); ++call) {
      const std::uint32_t around = of_call_[run.calls[call].parent];
      of_call_[call] = around != 0 ? around : operations[run.calls[call].operation] ? call : 0;
    }
    for (std::uint32_t block = 0; block < run.blocks.size(); ++block) {
      const std::uint32_t call = of_call_[run.blocks[block].born_in];
      if (call != 0 && run.calls[call].end != never_freed) blocks_[call].push_back(block);
    }
    for (const auto& each : blocks_) calls_.push_back(each.first);
    std::sort(calls_.begin(), calls_.end());
  }

  /// Those that ended and in which something was allocated, in order.
  [[nodiscard]] const std::vector<std::uint32_t>& calls() const noexcept { return calls_; }
  /// In the order of allocation.
  [[nodiscard]] const std::vector<std::uint32_t>& blocks_in(std::uint32_t call) const { return blocks_.at(call); }
  /// The owner's call around a call, or it itself; 0: none.
  [[nodiscard]] std::uint32_t around(std::uint32_t call) const { return of_call_[call]; }

  /// The last block of those that can be made again which is live at the call's end: what is used next; nothing if there is none.
  [[nodiscard]] std::optional<std::uint32_t> result_of(std::uint32_t call) const {
    std::optional<std::uint32_t> result;
    for (const std::uint32_t block : blocks_in(call)) {
      const history_block& each = run_.blocks[block];
      if (each.end >= run_.calls[call].end && is_intermediate(each.category) && each.end != never_freed) result = block;
    }
    return result;
  }

  /// What is live at the call's end, without its result.
  [[nodiscard]] std::vector<std::uint32_t> left_by(std::uint32_t call, bool with_state) const {
    std::vector<std::uint32_t> left;
    const std::optional<std::uint32_t> result = result_of(call);
    for (const std::uint32_t block : blocks_in(call)) {
      const history_block& each = run_.blocks[block];
      if (each.end < run_.calls[call].end || block == result) continue;
      const bool can_return = is_intermediate(each.category) && each.end != never_freed;
      if (can_return || (with_state && is_movable(each))) left.push_back(block);
    }
    return left;
  }

  /// Of what the call leaves, what outlives the widest call around it that not all of it stays in: the rest is passed on within
  /// the same pass.
  [[nodiscard]] std::vector<std::uint32_t> kept_for_later(std::uint32_t call, bool with_state) const {
    const std::vector<std::uint32_t> left = left_by(call, with_state);
    std::vector<std::uint32_t> kept = left;
    for (std::uint32_t around = run_.calls[call].parent; around != 0; around = run_.calls[around].parent) {
      std::vector<std::uint32_t> later;
      std::copy_if(left.begin(), left.end(), std::back_inserter(later),
                   [&](std::uint32_t block) { return run_.blocks[block].end >= run_.calls[around].end; });
      if (later.empty()) break;
      kept = std::move(later);
    }
    return kept;
  }

 private:
  [[nodiscard]] static bool is_movable(const history_block& block) {
    return block.category != category::input && !is_unknown_state(block);
  }

  const block_history& run_;
  std::vector<std::uint32_t> of_call_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> blocks_;
  std::vector<std::uint32_t> calls_;
};

/// Counts what the calls made and kept, of which nothing says what it is.
void count_unknown_state(what_if_price& price, const owner_calls& calls, const block_history& run) {
  for (const std::uint32_t call : calls.calls()) {
    for (const std::uint32_t block : calls.blocks_in(call)) {
      if (!is_unknown_state(run.blocks[block])) continue;
      ++price.unmoved_blocks;
      price.unmoved_bytes += run.blocks[block].bytes;
    }
  }
}

/// What one call kept for later.
struct kept_blocks {
  std::uint32_t call = 0;
  std::vector<std::uint32_t> blocks;
};

/// Finds the moment when what a call kept is needed again: the begin of the innermost later call that frees all of it and nothing
/// that another call kept; else of the outermost that frees only such; else its first free.
class return_moments {
 public:
  return_moments(const block_history& run, const std::vector<kept_blocks>& kept) : run_{run} {
    for (std::uint32_t index = 0; index < kept.size(); ++index) {
      for (const std::uint32_t block : kept[index].blocks) frees_.push_back({run.blocks[block].end, index});
    }
    std::sort(frees_.begin(), frees_.end());
    next_of_others_.resize(frees_.size(), never_freed);
    for (std::size_t index = frees_.size(); index-- > 0;) {
      if (index + 1 == frees_.size()) continue;
      next_of_others_[index] =
          frees_[index].second == frees_[index + 1].second ? next_of_others_[index + 1] : frees_[index + 1].first;
    }
  }

  [[nodiscard]] event_number of(const kept_blocks& kept, std::uint32_t index) const {
    const auto by_end = [&](std::uint32_t left, std::uint32_t right) { return run_.blocks[left].end < run_.blocks[right].end; };
    const auto [first, last] = std::minmax_element(kept.blocks.begin(), kept.blocks.end(), by_end);
    const event_number first_free = run_.blocks[*first].end;
    const event_number last_free = run_.blocks[*last].end;
    event_number found = first_free;
    for (std::uint32_t around = run_.blocks[*first].freed_in; around != 0; around = run_.calls[around].parent) {
      const block_history::call& call = run_.calls[around];
      if (call.begin < run_.calls[kept.call].end || !frees_only(call, index)) break;
      found = call.begin;
      if (call.end > last_free) break;
    }
    return found;
  }

 private:
  /// Whether all kept blocks that are freed in a call are those of `index`.
  [[nodiscard]] bool frees_only(const block_history::call& call, std::uint32_t index) const {
    const auto first = std::lower_bound(frees_.begin(), frees_.end(), std::pair{call.begin, std::uint32_t{0}});
    return first != frees_.end() && first->second == index &&
           next_of_others_[static_cast<std::size_t>(first - frees_.begin())] >= call.end;
  }

  const block_history& run_;
  std::vector<std::pair<event_number, std::uint32_t>> frees_;  ///< and whose they are
  std::vector<event_number> next_of_others_;                   ///< for each free, the next one of another call's block
};

/// Numbers what happens just before each event.
class places_before {
 public:
  [[nodiscard]] run_point next(event_number event) { return before_event(event, next_[event]++); }

 private:
  std::unordered_map<event_number, std::uint32_t> next_;
};

/// Repeats what a call allocated and freed, just before an event; what it kept lives on from there.
void repeat_call(scenario& to, const block_history& run, const std::vector<std::uint32_t>& allocated, const kept_blocks& kept,
                 event_number at, places_before& places) {
  struct action {
    event_number event;
    std::uint32_t block;
    bool is_end;
  };
  const event_number end = run.calls[kept.call].end;
  std::vector<action> actions;
  for (const std::uint32_t block : allocated) {
    const history_block& each = run.blocks[block];
    if (!is_intermediate(each.category) || to.ends[block] == 0) continue;
    if (each.end == never_freed) continue;  // state that it made once
    actions.push_back({each.begin, block, false});
    if (!std::binary_search(kept.blocks.begin(), kept.blocks.end(), block))
      actions.push_back({std::min(each.end, end), block, true});
  }
  std::sort(actions.begin(), actions.end(), [](const action& left, const action& right) {
    return std::pair{left.event, left.block} < std::pair{right.event, right.block};
  });
  std::unordered_map<std::uint32_t, std::size_t> life_of;
  for (const action& each : actions) {
    const run_point now = places.next(at);
    if (each.is_end) {
      to.further[life_of.at(each.block)].end = now;
      continue;
    }
    life_of[each.block] = to.further.size();
    to.further.push_back({now, to.ends[each.block], each.block});
    ++to.price.recomputed_allocations;
    to.price.recomputed_bytes += to.bytes[each.block];
  }
  ++to.price.recomputed_calls;
  for (const std::uint32_t block : kept.blocks) {
    to.ends[block] = after_event(end - 1);
    to.is_changed[block] = to.has_moved[block] = true;
  }
}

std::vector<kept_blocks> kept_by(const owner_calls& calls, const scenario& in, bool with_state) {
  std::vector<kept_blocks> kept;
  for (const std::uint32_t call : calls.calls()) {
    kept_blocks of{call, calls.kept_for_later(call, with_state)};
    std::erase_if(of.blocks, [&](std::uint32_t block) { return in.ends[block] == 0 || in.has_moved[block]; });
    if (!of.blocks.empty()) kept.push_back(std::move(of));
  }
  return kept;
}

/// Has a block elsewhere from an event on, until the begin of the call that frees it. Where its last use is known, what comes
/// back ends with that.
void send_away(scenario& to, const block_history& run, std::uint32_t block, event_number leaves, places_before& places) {
  const history_block& each = run.blocks[block];
  const run_point end = to.ends[block];
  lifetime away{after_event(leaves - 1), never, block};
  if (end != never) {
    const block_history::call& freeing = run.calls[each.freed_in];
    const event_number returns = each.freed_in != 0 && freeing.begin >= leaves ? freeing.begin : each.end;
    away.end = places.next(returns);
    const bool is_use_known = !run.uses.empty() && run.uses[block].is_known && run.uses[block].last >= returns;
    to.further.push_back({away.end, is_use_known ? std::min(end, after_event(run.uses[block].last)) : end, block});
    to.price.fetched_bytes += to.bytes[block];
  } else {
    ++to.price.unreturned_blocks;
  }
  to.away.push_back(away);
  to.ends[block] = away.begin;
  to.is_changed[block] = to.has_moved[block] = true;
  ++to.price.offloaded_blocks;
  to.price.offloaded_bytes += to.bytes[block];
}

}  // namespace

void recompute(scenario& to, const block_history& run, std::string_view owner) {
  const owner_calls calls{run, owner};
  const std::vector<kept_blocks> kept = kept_by(calls, to, false);
  const return_moments moments{run, kept};
  places_before places;
  std::vector<event_number> at(kept.size());
  std::unordered_map<std::uint32_t, std::size_t> kept_of;
  for (std::uint32_t index = 0; index < kept.size(); ++index) {
    at[index] = moments.of(kept[index], index);
    kept_of[kept[index].call] = index;
  }
  // What a call frees of others' blocks was its input, which is needed again.
  for (std::uint32_t block = 0; block < run.blocks.size(); ++block) {
    const history_block& each = run.blocks[block];
    const std::uint32_t freed_in = calls.around(each.freed_in);
    const auto found = kept_of.find(freed_in);
    if (found == kept_of.end() || calls.around(each.born_in) == freed_in || !is_intermediate(each.category)) continue;
    if (to.ends[block] != at_event(each.end)) continue;
    to.ends[block] = at_event(at[found->second]);
    to.is_changed[block] = to.has_moved[block] = true;
  }
  for (std::uint32_t index = 0; index < kept.size(); ++index)
    repeat_call(to, run, calls.blocks_in(kept[index].call), kept[index], at[index], places);
}

void offload(scenario& to, const block_history& run, std::string_view owner) {
  const owner_calls calls{run, owner};
  count_unknown_state(to.price, calls, run);
  places_before places;
  for (const kept_blocks& kept : kept_by(calls, to, true)) {
    for (const std::uint32_t block : kept.blocks) send_away(to, run, block, run.calls[kept.call].end, places);
  }
  // A result is the input of the next call, which keeps it: it leaves at the end of that.
  for (std::size_t index = 1; index < calls.calls().size(); ++index) {
    const std::optional<std::uint32_t> result = calls.result_of(calls.calls()[index - 1]);
    if (!result || to.ends[*result] == 0 || to.has_moved[*result]) continue;
    const event_number leaves = run.calls[calls.calls()[index]].end;
    const std::uint32_t freed_in = run.blocks[*result].freed_in;
    if (freed_in != 0 && run.calls[freed_in].begin >= leaves) send_away(to, run, *result, leaves, places);
  }
}

void free_at_last_use(scenario& to, const block_history& run, const std::vector<bool>& at_peak) {
  if (run.uses.empty()) raise("no use of a block is recorded, so nothing says which is the last");
  to.price.unmatched_uses = run.unmatched_uses;
  for (std::uint32_t block = 0; block < run.blocks.size(); ++block) {
    const block_history::use& used = run.uses[block];
    const category kind = run.blocks[block].category;
    if (kind == category::parameter || kind == category::optimizer_state) continue;  // a further step would use them
    if (to.ends[block] == 0 || to.has_moved[block]) continue;
    if (!used.is_known) {
      if (at_peak[block]) to.price.unused_bytes += to.bytes[block];
      continue;
    }
    const run_point end = after_event(used.last);
    if (end >= to.ends[block]) continue;
    to.ends[block] = end;
    to.is_changed[block] = to.has_moved[block] = true;
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
