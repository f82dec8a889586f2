#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if/scenario.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

bool is_live_at(const lifetime& of, run_point at) { return at != 0 && of.begin <= at && of.end > at; }

what_if_peak described(const block_history& run, const found_peak& peak, std::int64_t blocks) {
  what_if_peak result;
  result.bytes = peak.bytes;
  result.blocks = blocks;
  if (peak.at == 0) return result;
  result.is_return = is_before_event(peak.at);
  for (const std::string& name : run.path(run.blocks[peak.block].operation)) append_operation(result.operation, name);
  const auto segment = std::lower_bound(run.segments.begin(), run.segments.end(), event_of(peak.at),
                                        [](const block_history::segment& each, event_number event) { return each.last < event; });
  if (segment == run.segments.end()) return result;
  result.segment = run.segment_names.at(segment->name);
  for (auto each = run.segments.begin(); each != run.segments.end(); ++each) {
    if (each->name != segment->name) continue;
    ++result.occurrences;
    if (each <= segment) ++result.occurrence;
  }
  return result;
}

/// Sums up what is live at two peaks.
class peak_owners {
 public:
  void add(const std::string& owner, std::int64_t bytes, bool is_after) {
    what_if_owner& row = rows_[owner];
    (is_after ? row.after : row.before) += bytes;
    ++(is_after ? row.blocks_after : row.blocks_before);
  }
  [[nodiscard]] std::vector<what_if_owner> rows() const {
    std::vector<what_if_owner> result;
    for (const auto& [owner, row] : rows_) {
      result.push_back(row);
      result.back().owner = owner;
    }
    std::stable_sort(result.begin(), result.end(), [](const what_if_owner& left, const what_if_owner& right) {
      return left.after != right.after ? left.after > right.after : left.before > right.before;
    });
    return result;
  }

 private:
  std::map<std::string, what_if_owner> rows_;
};

/// A run at its peak.
struct replayed_run {
  std::vector<lifetime> lifetimes;
  found_peak peak;
  std::vector<std::uint32_t> live;  ///< the blocks then
};

replayed_run replayed(const block_history& run, const scenario& in) {
  replayed_run result{in.lifetimes(run), {}, {}};
  double total = 0;
  for (const lifetime& each : result.lifetimes) total += static_cast<double>(in.bytes[each.block]);
  if (total > most_bytes) raise("with this change, the blocks of the run add up to more than 8 EiB");
  result.peak = peak_of(in, result.lifetimes);
  for (const lifetime& each : result.lifetimes) {
    if (is_live_at(each, result.peak.at)) result.live.push_back(each.block);
  }
  return result;
}

/// What a recomputed call in its first run holds to its end at the peak. The block that reaches the peak is needed in any case.
std::int64_t held_at_peak(const block_history& run, const scenario& in, const std::vector<bool>& recomputed,
                          const replayed_run& of) {
  std::int64_t held = 0;
  for (const lifetime& each : of.lifetimes) {
    if (!recomputed[each.block] || each.block == of.peak.block || !is_live_at(each, of.peak.at)) continue;
    const bool is_first = each.end == in.ends[each.block];
    if (is_first && each.end < at_event(run.blocks[each.block].end)) held += in.bytes[each.block];
  }
  return held;
}

void remove(scenario& from, const block_history& run, const what_if_change& change) {
  std::vector<bool> owners(run.operations.size());
  for (const std::string& owner : change.without) {
    const std::vector<bool> found = operations_of(run, owner);
    for (std::size_t index = 0; index < owners.size(); ++index) owners[index] = owners[index] || found[index];
  }
  for (std::size_t index = 0; index < run.blocks.size(); ++index) {
    const history_block& block = run.blocks[index];
    const bool is_of_category = std::find(change.without_categories.begin(), change.without_categories.end(), block.category) !=
                                change.without_categories.end();
    if (!owners[block.operation] && !is_of_category) continue;
    from.ends[index] = 0;
    from.is_changed[index] = true;
  }
}

}  // namespace
}  // namespace detail

bool has_owner(const block_history& run, std::string_view owner) {
  try {
    (void)detail::operations_of(run, owner);
    return true;
  } catch (const error&) {
    return false;
  }
}

std::vector<std::string> owner_names(const block_history& run) {
  std::set<std::string> names;
  for (std::uint32_t operation = 1; operation < run.operations.size(); ++operation) {
    std::string path;
    for (const std::string& name : run.path(operation)) path += (path.empty() ? "" : "/") + name;
    names.insert(detail::with_folded_layers(path));
    names.insert(std::move(path));
  }
  return {names.begin(), names.end()};
}

what_if_result what_if(const block_history& run, const what_if_change& change) {
  using namespace detail;
  const scenario as_it_was{run};
  const replayed_run before = replayed(run, as_it_was);
  std::vector<bool> at_peak(run.blocks.size());
  for (const std::uint32_t block : before.live) at_peak[block] = true;

  scenario changed = as_it_was;
  remove(changed, run, change);
  if (!change.types.empty()) retype(changed, run, change.types, at_peak);
  if (change.batch) scale_batch(changed, run, *change.batch, at_peak);
  for (const std::string& owner : change.recompute) recompute(changed, run, owner);
  const std::vector<bool> recomputed = changed.has_moved;
  for (const std::string& owner : change.offload) offload(changed, run, owner);
  if (change.free_at_last_use) free_at_last_use(changed, run, at_peak);
  const replayed_run after = replayed(run, changed);

  what_if_result result;
  result.space = run.space;
  const bool is_other_exact = !change.batch || change.batch->other == nullptr || change.batch->other->exact;
  result.exact = run.exact && is_other_exact;
  result.remarks = run.remarks;
  if (change.batch && change.batch->other != nullptr)
    result.remarks = titled_remarks({"this run", "the other run"}, {run.remarks, change.batch->other->remarks});
  result.before = described(run, before.peak, static_cast<std::int64_t>(before.live.size()));
  result.after = described(run, after.peak, static_cast<std::int64_t>(after.live.size()));
  result.changed_blocks = std::count(changed.is_changed.begin(), changed.is_changed.end(), true);
  result.price = changed.price;
  result.price.held_bytes = held_at_peak(run, changed, recomputed, after);
  result.is_recomputed = !change.recompute.empty();
  std::sort(changed.away.begin(), changed.away.end(),
            [](const lifetime& left, const lifetime& right) { return left.begin < right.begin; });
  result.price.offloaded_peak = peak_of(changed, changed.away).bytes;

  peak_owners owners;
  peak_owners categories;
  const std::vector<std::string> names = owner_labels(run);
  const auto add = [&](const replayed_run& of, const scenario& in, bool is_after) {
    for (const std::uint32_t block : of.live) {
      owners.add(names[run.blocks[block].operation], in.bytes[block], is_after);
      categories.add(std::string{to_string(run.blocks[block].category)}, in.bytes[block], is_after);
    }
  };
  add(before, as_it_was, false);
  add(after, changed, true);
  result.owners = owners.rows();
  result.categories = categories.rows();
  if (run.has_allocator) {
    result.reserved_before = reserved_by(as_it_was, before.lifetimes);
    result.reserved_after = reserved_by(changed, after.lifetimes);
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI
