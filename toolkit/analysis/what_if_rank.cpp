#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if/scenario.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Which owner each block has, and what happens at each event.
class owned_events {
 public:
  explicit owned_events(const block_history& run) : run_{run}, block_at_(std::size_t{run.events} + 1) {
    std::map<std::string, std::uint32_t> known;
    for (const std::string& label : owner_labels(run)) {
      const auto [found, is_new] = known.try_emplace(label, static_cast<std::uint32_t>(names_.size()));
      if (is_new) names_.push_back(found->first);
      owner_of_operation_.push_back(found->second);
    }
    for (std::uint32_t block = 0; block < run.blocks.size(); ++block) {
      block_at_[run.blocks[block].begin] = block;
      if (run.blocks[block].end != never_freed) block_at_[run.blocks[block].end] = block;
    }
  }

  [[nodiscard]] std::size_t owners() const noexcept { return names_.size(); }
  [[nodiscard]] const std::string& name(std::size_t owner) const { return names_[owner]; }
  [[nodiscard]] std::uint32_t owner_of(const history_block& block) const { return owner_of_operation_[block.operation]; }
  [[nodiscard]] const block_history& run() const noexcept { return run_; }

  /// Calls `visit(event, change, block)` for each event, in order.
  template <class Visitor>
  void for_each_change(Visitor&& visit) const {
    for (event_number event = 1; event <= run_.events; ++event) {
      const history_block& block = run_.blocks[block_at_[event]];
      visit(event, block.begin == event ? block.bytes : -block.bytes, block);
    }
  }

 private:
  const block_history& run_;
  std::vector<std::uint32_t> block_at_;  ///< which block an event allocates or frees
  std::vector<std::string> names_;
  std::vector<std::uint32_t> owner_of_operation_;
};

struct highest {
  std::int64_t bytes = 0;
  event_number at = 0;  ///< 0: nothing was ever live
};

/// The peak of the blocks for which `counts(block)`.
template <class Counts>
highest highest_of(const owned_events& events, Counts&& counts) {
  highest found;
  std::int64_t live = 0;
  events.for_each_change([&](event_number event, std::int64_t change, const history_block& block) {
    if (!counts(block)) return;
    live += change;
    if (live > found.bytes) found = {live, event};
  });
  return found;
}

bool is_live_after(const history_block& block, event_number event) { return block.begin <= event && block.end > event; }

/// Finds the maximum of any range of an array.
class range_maximum {
 public:
  explicit range_maximum(const std::vector<std::int64_t>& leaves) : size_{leaves.size()}, tree_(size_) {
    tree_.insert(tree_.end(), leaves.begin(), leaves.end());
    for (std::size_t node = size_; node-- > 1;) tree_[node] = std::max(tree_[2 * node], tree_[2 * node + 1]);
  }

  /// Of [first, last), which is not empty.
  [[nodiscard]] std::int64_t of(std::size_t first, std::size_t last) const {
    std::int64_t most = tree_[first + size_];
    for (first += size_, last += size_; first < last; first /= 2, last /= 2) {
      if (first % 2 != 0) most = std::max(most, tree_[first++]);
      if (last % 2 != 0) most = std::max(most, tree_[--last]);
    }
    return most;
  }

 private:
  std::size_t size_;
  std::vector<std::int64_t> tree_;
};

std::vector<ranked_owner> live_owners(const owned_events& events, event_number at) {
  std::vector<ranked_owner> rows(events.owners());
  for (std::size_t owner = 0; owner < rows.size(); ++owner) rows[owner].owner = events.name(owner);
  for (const history_block& block : events.run().blocks) {
    if (!is_live_after(block, at)) continue;
    rows[events.owner_of(block)].live += block.bytes;
    ++rows[events.owner_of(block)].blocks;
  }
  return rows;
}

}  // namespace
}  // namespace detail

owner_ranking rank_owners(const block_history& run) {
  using namespace detail;
  const owned_events events{run};
  owner_ranking result;
  result.space = run.space;
  result.exact = run.exact;
  result.remarks = run.remarks;
  std::vector<std::int64_t> live(std::size_t{run.events} + 1);
  events.for_each_change(
      [&](event_number event, std::int64_t change, const history_block&) { live[event] = live[event - 1] + change; });
  const highest peak = highest_of(events, [](const history_block&) { return true; });
  result.peak = peak.bytes;
  if (peak.at == 0) return result;
  std::vector<ranked_owner> rows = live_owners(events, peak.at);

  /// What an owner has live, and since when; the highest rest until then.
  struct own_bytes {
    std::int64_t live = 0;
    event_number since = 0;
    std::int64_t most_of_others = 0;
  };
  std::vector<own_bytes> own(rows.size());
  const range_maximum most{live};
  const auto end_stretch = [&](own_bytes& of, event_number event) {
    if (event > of.since) of.most_of_others = std::max(of.most_of_others, most.of(of.since, event) - of.live);
    of.since = event;
  };
  events.for_each_change([&](event_number event, std::int64_t change, const history_block& block) {
    const std::uint32_t owner = events.owner_of(block);
    if (rows[owner].live == 0) return;
    end_stretch(own[owner], event);
    own[owner].live += change;
  });
  for (std::size_t owner = 0; owner < rows.size(); ++owner) {
    if (rows[owner].live == 0) continue;
    end_stretch(own[owner], run.events + 1);
    rows[owner].peak = own[owner].most_of_others;
    result.owners.push_back(std::move(rows[owner]));
  }
  std::stable_sort(result.owners.begin(), result.owners.end(), [](const ranked_owner& left, const ranked_owner& right) {
    return left.peak != right.peak ? left.peak < right.peak : left.live > right.live;
  });
  return result;
}

namespace detail {
namespace {

/// A moment at which too much is live: how much too much, and what each owner has of it.
struct excess {
  std::int64_t bytes = 0;
  std::vector<std::int64_t> owned;
};

/// Finds the fewest owners that have all of every excess.
class fewest_owners {
 public:
  fewest_owners(const std::vector<excess>& rows, std::size_t owners, std::int64_t effort)
      : rows_{rows}, state_(owners, state::free), effort_{effort} {}

  /// The owners; exactly, unless `is_exact()` is false then.
  std::vector<std::uint32_t> find() {
    std::vector<std::uint32_t> by_greed = greedy();
    for (std::size_t count = 0; count < by_greed.size(); ++count) {
      std::fill(state_.begin(), state_.end(), state::free);
      if (search(count)) return taken();
      if (!is_exact()) break;
    }
    return by_greed;
  }
  [[nodiscard]] bool is_exact() const noexcept { return sums_ < effort_; }

 private:
  enum class state : std::uint8_t { free, taken, excluded };

  [[nodiscard]] std::vector<std::uint32_t> taken() const {
    std::vector<std::uint32_t> owners;
    for (std::uint32_t owner = 0; owner < state_.size(); ++owner) {
      if (state_[owner] == state::taken) owners.push_back(owner);
    }
    return owners;
  }
  [[nodiscard]] std::int64_t missing(const excess& row) const {
    std::int64_t rest = row.bytes;
    for (std::size_t owner = 0; owner < state_.size(); ++owner) {
      if (state_[owner] == state::taken) rest -= row.owned[owner];
    }
    return rest;
  }

  /// Takes the owner that has most of what is still missing, until nothing is.
  std::vector<std::uint32_t> greedy() {
    while (true) {
      std::uint32_t best = 0;
      std::int64_t most = 0;
      for (std::uint32_t owner = 0; owner < state_.size(); ++owner) {
        if (state_[owner] == state::taken) continue;
        std::int64_t helps = 0;
        for (const excess& row : rows_) helps += std::max<std::int64_t>(0, std::min(missing(row), row.owned[owner]));
        if (helps <= most) continue;
        most = helps;
        best = owner;
      }
      if (most == 0) return taken();
      state_[best] = state::taken;
    }
  }

  /// Whether `more` further owners suffice, which are then taken. One of those that have a part of the greatest excess must be
  /// among them.
  bool search(std::size_t more) {
    sums_ += static_cast<std::int64_t>(rows_.size() * state_.size());
    const excess* worst = nullptr;
    std::int64_t rest = 0;
    for (const excess& row : rows_) {
      if (const std::int64_t left = missing(row); left > rest) {
        rest = left;
        worst = &row;
      }
    }
    if (worst == nullptr) return true;
    std::vector<std::uint32_t> candidates;
    for (std::uint32_t owner = 0; owner < state_.size(); ++owner) {
      if (state_[owner] == state::free && worst->owned[owner] > 0) candidates.push_back(owner);
    }
    std::sort(candidates.begin(), candidates.end(),
              [&](std::uint32_t left, std::uint32_t right) { return worst->owned[left] > worst->owned[right]; });
    bool is_found = false;
    std::size_t tried = 0;
    for (; tried < candidates.size() && !is_found && is_exact(); ++tried) {
      std::int64_t possible = 0;
      for (std::size_t index = tried; index < std::min(candidates.size(), tried + more); ++index)
        possible += worst->owned[candidates[index]];
      if (possible < rest) break;
      state_[candidates[tried]] = state::taken;
      is_found = search(more - 1);
      if (!is_found) state_[candidates[tried]] = state::excluded;
    }
    if (is_found) return true;
    for (std::size_t index = 0; index < tried; ++index) state_[candidates[index]] = state::free;
    return false;
  }

  const std::vector<excess>& rows_;
  std::vector<state> state_;
  std::int64_t effort_;
  std::int64_t sums_ = 0;  ///< that attempts have made
};

bool is_removable(const history_block& block) { return block.operation != 0 && is_intermediate(block.category); }

}  // namespace
}  // namespace detail

target_answer find_target(const block_history& run, std::int64_t target, std::int64_t effort) {
  using namespace detail;
  const owned_events events{run};
  std::vector<bool> is_gone(events.owners());
  const auto is_left = [&](const history_block& block) { return !is_gone[events.owner_of(block)] || !is_removable(block); };
  target_answer result;
  result.space = run.space;
  result.exact = run.exact;
  result.remarks = run.remarks;
  result.target = target;
  const highest peak = highest_of(events, is_left);
  result.peak = peak.bytes;
  result.least = highest_of(events, [](const history_block& block) { return !is_removable(block); }).bytes;
  if (!result.is_possible()) return result;

  std::vector<excess> rows;
  std::vector<std::uint32_t> found;
  for (highest now = peak; now.bytes > target; now = highest_of(events, is_left)) {
    excess& row = rows.emplace_back();
    row.owned.resize(events.owners());
    row.bytes = -target;
    for (const history_block& block : run.blocks) {
      if (!is_live_after(block, now.at)) continue;
      row.bytes += block.bytes;
      if (is_removable(block)) row.owned[events.owner_of(block)] += block.bytes;
    }
    fewest_owners search{rows, events.owners(), result.is_smallest ? effort : 0};
    found = search.find();
    result.is_smallest = result.is_smallest && search.is_exact();
    std::fill(is_gone.begin(), is_gone.end(), false);
    for (const std::uint32_t owner : found) is_gone[owner] = true;
  }
  // In the order in which each helps most by itself at the old peak.
  std::vector<ranked_owner> live(events.owners());
  for (const history_block& block : run.blocks) {
    if (!is_live_after(block, peak.at) || !is_removable(block)) continue;
    live[events.owner_of(block)].live += block.bytes;
    ++live[events.owner_of(block)].blocks;
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](std::uint32_t left, std::uint32_t right) { return live[left].live > live[right].live; });
  std::fill(is_gone.begin(), is_gone.end(), false);
  result.new_peak = peak.bytes;
  for (const std::uint32_t owner : found) {
    is_gone[owner] = true;
    result.new_peak = highest_of(events, is_left).bytes;
    result.owners.push_back({events.name(owner), live[owner].live, live[owner].blocks, result.new_peak});
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
