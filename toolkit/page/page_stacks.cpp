#include <memprof/config.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/heap_sample.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/frame_timeline.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/page_stacks.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/stack_tree.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Whether sums of what sampled blocks stand for stay below 2^63, whatever the trace.
[[nodiscard]] bool is_usable_sample(const heap_stacks& recorded) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 30U;
  return recorded.sample_bytes <= most && recorded.from_bytes <= most;
}

/// The variance of a weight is the sample's distance squared, or less.
[[nodiscard]] double variance_unit_of(const heap_stacks& recorded) noexcept {
  const auto distance = static_cast<double>(std::max<std::int64_t>(recorded.sample_bytes, 1));
  return std::max(distance * distance / 1024, 1.0);
}

/// A block in the terms of the stacks: what its owner gets, and whether it is among the small ones of its operation.
struct stacked_block {
  stack_owner owner;
  stack_sum sum;
  bool is_small = false;
  bool has_owner = true;  ///< a small block without a stack is only among the small ones

  stacked_block(const replayed_block& block, const heap_stacks& recorded) : owner{block.operation, block.call_stack} {
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    const double chance = chance_of_stack(bytes, recorded);
    is_small = chance < 1;
    if (!is_small) {
      sum.bytes = bytes;
      sum.blocks = 1;
      return;
    }
    has_owner = block.call_stack != 0 && chance > 0;
    if (!has_owner) return;
    const auto size = static_cast<double>(bytes);
    sum.weight = std::llround(size / chance);
    sum.sampled = 1;
    sum.variance = std::llround(size * size * (1 - chance) / (chance * chance) / variance_unit_of(recorded));
  }
};

/// Passes the blocks of the C++ heap to a listener: `change(at, owner, sum, sign)` for each owner, and `end_event(moment)` when
/// an event has changed them.
template <class Listener>
class stacked_blocks : public replay_handler {
 public:
  stacked_blocks(Listener& listener, const heap_stacks& recorded, const clock_readings& clock)
      : listener_(listener), recorded_(recorded), replay_(*this, clock) {}

  [[nodiscard]] const replay_state& state() const noexcept { return replay_.state(); }

  // --- of a trace_replay --------------------------------------------------------------------------------------------

  void on_allocation(const replay_state&, const replayed_block& block) { change(block, 1); }
  void on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t) { change(block, -1); }

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info) {
    if (now_.event == 0) now_.stamp = info.begin_stamp;
    replay_.info(info);
  }
  void name(label id, std::string_view text) { replay_.name(id, text); }
  void space(const space_definition& space) { replay_.space(space); }
  void facts(fact_part&&) {}
  void events(const event* first, const event* last, std::uint32_t ring) {
    for (; first != last; ++first, ++now_.event) {
      now_.stamp = std::max(now_.stamp, first->stamp);
      is_changed_ = now_.event == 0;
      replay_.events(first, first + 1, ring);
      if (is_changed_) listener_.end_event(now_);
    }
  }

 private:
  void change(const replayed_block& block, std::int64_t sign) {
    if (block.space != cpu_space) return;
    is_changed_ = true;
    const stacked_block found{block, recorded_};
    if (found.has_owner) listener_.change(found.owner, found.sum, sign);
    if (!found.is_small) return;
    const stack_sum small{static_cast<std::int64_t>(block.bytes), 1};
    listener_.change({block.operation, stack_owner::small_blocks}, small, sign);
  }

  Listener& listener_;
  const heap_stacks& recorded_;
  trace_replay<stacked_blocks> replay_;
  moment now_;
  bool is_changed_ = false;
};

/// What each owner allocated, and had at the peak and at the end.
struct stack_survey {
  struct row {
    stack_owner owner;
    owner_stats known{};
    owner_stats sampled{};
    stack_sum allocated{};
  };

  std::unordered_map<std::uint64_t, std::size_t> row_of;
  std::vector<row> rows;
  std::int64_t live = 0;
  std::int64_t peak = 0;
  std::uint64_t epoch = 1;

  void change(const stack_owner& owner, const stack_sum& sum, std::int64_t sign) {
    const auto [found, is_new] = row_of.try_emplace(owner.key(), rows.size());
    if (is_new) rows.push_back({owner});
    row& changed = rows[found->second];
    changed.known.change(epoch, sign * sum.bytes, sign * sum.blocks);
    changed.sampled.change(epoch, sign * sum.weight, sign * sum.sampled);
    live += sign * sum.bytes;
    if (sign < 0) return;
    changed.allocated.bytes += sum.bytes;
    changed.allocated.blocks += sum.blocks;
    changed.allocated.weight += sum.weight;
    changed.allocated.sampled += sum.sampled;
    changed.allocated.variance += sum.variance;
  }
  void end_event(const moment&) {
    if (live <= peak) return;
    peak = live;
    ++epoch;
  }

  /// For the choice of nodes alone, what sampled blocks stand for counts as theirs, beside the small blocks of their operation.
  [[nodiscard]] stack_weights weights(const row& of) const noexcept {
    const auto sum = [](std::int64_t known, std::int64_t sampled) { return known / 2 + sampled / 2; };  // cannot overflow
    return {sum(of.known.bytes_at_peak(epoch), of.sampled.bytes_at_peak(epoch)), sum(of.known.live, of.sampled.live),
            sum(of.allocated.bytes, of.allocated.weight)};
  }
};

/// What each node has over time.
struct stack_history {
  const stack_tree& tree;
  bool is_sample;
  std::vector<std::uint32_t> slot_of_node;
  std::vector<std::uint32_t> node_of_slot;
  frame_timeline timeline;
  std::int64_t live = 0;
  std::int64_t blocks = 0;

  [[nodiscard]] std::size_t slot(std::uint32_t node, page_stacks::column of) const {
    return is_sample ? std::size_t{3} * slot_of_node[node] + static_cast<std::size_t>(of) : slot_of_node[node];
  }

  void change(const stack_owner& owner, const stack_sum& sum, std::int64_t sign) {
    const std::uint32_t node = tree.node_of(owner);
    if (sum.blocks != 0) {
      timeline.change(slot(node, page_stacks::column::known), sign * sum.bytes, sign * sum.blocks);
      live += sign * sum.bytes;
      blocks += sign * sum.blocks;
    }
    // The small blocks of an operation without a node are known as a whole.
    if (sum.sampled == 0 || !tree.has_operation(owner.operation)) return;
    timeline.change(slot(node, page_stacks::column::sampled), sign * sum.weight, sign * sum.sampled);
    timeline.change(slot(node, page_stacks::column::variance), sign * sum.variance, 0);
  }
  void end_event(const moment& now) { timeline.end_event(now, live, blocks, {}); }
};

[[nodiscard]] std::vector<stack_tree::operation> operations_in(const replay_state& at) {
  std::vector<stack_tree::operation> operations;
  for (std::size_t node = 0; node < at.operations().size(); ++node) {
    const operation_tree::node& each = at.operations()[node];
    operations.push_back({each.parent, node == 0 ? std::string{} : std::string{at.names.text(each.name)}});
  }
  return operations;
}

}  // namespace

std::optional<page_stacks> stacks_for_page(const trace_source_view& source, const profile& of, const run_survey& survey,
                                           const html_options& options, const stack_limits& most) {
  const std::optional<heap_stacks> recorded = recorded_stacks_of(of);
  if (!options.calls_of_stack || !recorded || !is_usable_sample(*recorded)) return std::nullopt;
  stack_survey found;
  stacked_blocks<stack_survey> reading{found, *recorded, survey.clock()};
  source.visit(reading);

  std::vector<stack_tree::row> rows;
  for (const stack_survey::row& row : found.rows) rows.push_back({row.owner, found.weights(row)});
  const name_view names{reading.state().names};
  const auto calls = [&](label stack) { return options.calls_of_stack(names, stack); };
  const stack_tree tree{operations_in(reading.state()), std::move(rows), calls, most.tree};

  page_stacks result;
  result.recorded = *recorded;
  result.variance_unit = variance_unit_of(*recorded);
  result.nodes = tree.nodes();
  result.left_out = tree.left_out();
  result.allocated.resize(result.nodes.size());
  std::vector<std::uint32_t> slot_of_node(result.nodes.size(), std::numeric_limits<std::uint32_t>::max());
  std::vector<std::uint32_t> node_of_slot;
  for (const stack_survey::row& row : found.rows) {
    const std::uint32_t node = tree.node_of(row.owner);
    if (slot_of_node[node] == std::numeric_limits<std::uint32_t>::max()) {
      slot_of_node[node] = static_cast<std::uint32_t>(node_of_slot.size());
      node_of_slot.push_back(node);
    }
    stack_sum& sum = result.allocated[node];
    sum.bytes += row.allocated.bytes;
    sum.blocks += row.allocated.blocks;
    if (!tree.has_operation(row.owner.operation)) continue;
    sum.weight += row.allocated.weight;
    sum.sampled += row.allocated.sampled;
    sum.variance += row.allocated.variance;
  }

  const bool is_sample = recorded->sample_bytes > 0;
  const std::size_t columns = is_sample ? 3 : 1;
  const std::size_t slots = std::max<std::size_t>(columns * node_of_slot.size(), 1);
  const std::size_t buckets = std::min(most.buckets, std::max<std::size_t>(most.parts / slots, 64));
  const std::uint64_t begin = survey.fold().info().begin_stamp;
  stack_history history{tree, is_sample, std::move(slot_of_node), std::move(node_of_slot),
                        frame_timeline{slots, survey.activity(cpu_space), std::max(survey.last_stamp(), begin) - begin, buckets}};
  stacked_blocks<stack_history> filling{history, *recorded, survey.clock()};
  source.visit(filling);
  history.timeline.finish();
  result.buckets = history.timeline.buckets();
  for (const frame_timeline::part& part : history.timeline.parts()) {
    result.parts.push_back({part.bucket, history.node_of_slot[part.slot / columns],
                            static_cast<page_stacks::column>(part.slot % columns), part.bytes, part.blocks});
  }
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
