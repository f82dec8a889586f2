#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/fact/python_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Finds the allocations that made the peaks of the memory spaces.
struct peak_finder : replay_handler {
  struct space_peak {
    std::int64_t live = 0;
    std::int64_t peak = 0;
    std::uint64_t ordinal = 0;  ///< 0: there is none
  };
  std::array<space_peak, std::size_t{extend::any_space} + 1> spaces{};

  void on_allocation(const replay_state&, const replayed_block& block) {
    space_peak& of = spaces[block.space];
    of.live += static_cast<std::int64_t>(block.bytes);
    if (of.live <= of.peak) return;
    of.peak = of.live;
    of.ordinal = block.ordinal;
  }
  void on_deallocation(const replay_state&, const replayed_block& block, std::uint32_t) {
    spaces[block.space].live -= static_cast<std::int64_t>(block.bytes);
  }

  /// The C++ heap; of stacks of Python, which tensors have wherever they are, the space with the greatest peak.
  [[nodiscard]] std::uint8_t space_with_stacks(const heap_stacks& recorded) const {
    if (recorded.unwinder != stacks_of_python) return extend::cpu_space;
    const auto greatest = std::max_element(
        spaces.begin(), spaces.end(), [](const space_peak& left, const space_peak& right) { return left.peak < right.peak; });
    return static_cast<std::uint8_t>(greatest - spaces.begin());
  }
};

/// Copies what is live when that allocation has happened.
struct space_at_peak : replay_handler {
  std::uint8_t space = extend::cpu_space;
  std::uint64_t ordinal = 0;
  const trace_replay<space_at_peak>* replay = nullptr;
  std::vector<replayed_block> blocks;

  void on_allocation(const replay_state&, const replayed_block& block) {
    if (block.space != space || block.ordinal != ordinal) return;
    replay->for_each_live(space, [this](const replayed_block& live) { blocks.push_back(live); });
  }
};

/// What the blocks of one stack, or of one caller, are, and what those of a sample stand for.
struct stack_sum {
  double bytes = 0;  ///< of blocks that all have a stack
  double blocks = 0;
  double sampled_bytes = 0;
  double sampled_blocks = 0;
  double variance = 0;  ///< of `sampled_bytes`
  std::int64_t sample = 0;
  std::int64_t recorded = 0;

  void add(const stack_sum& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    sampled_bytes += other.sampled_bytes;
    sampled_blocks += other.sampled_blocks;
    variance += other.variance;
    sample += other.sample;
    recorded += other.recorded;
  }
};

/// A sampled block stands for as many as it is improbable (Horvitz and Thompson, 1952).
[[nodiscard]] stack_sum sum_of(const replayed_block& block, const heap_stacks& recorded) {
  const auto bytes = static_cast<double>(block.bytes);
  const double chance = chance_of_stack(static_cast<std::int64_t>(block.bytes), recorded);
  stack_sum sum;
  sum.recorded = 1;
  if (chance >= 1) {
    sum.bytes = bytes;
    sum.blocks = 1;
  } else if (chance > 0) {
    sum.sampled_bytes = bytes / chance;
    sum.sampled_blocks = 1 / chance;
    sum.variance = bytes * bytes * (1 - chance) / (chance * chance);
    sum.sample = 1;
  }
  return sum;
}

/// The small blocks of a sample, whether they have a stack or not.
struct small_blocks {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// One caller's row: what all blocks with a stack of it are, and its share of the small blocks.
[[nodiscard]] caller_bytes row_of(const std::string& caller, const stack_sum& sum, const stack_sum& all,
                                  const small_blocks& small) {
  caller_bytes row{caller.empty() ? "an unknown caller" : caller, sum.bytes, sum.blocks};
  row.recorded_blocks = sum.recorded;
  if (sum.sample == 0) return row;
  row.is_estimated = true;
  const double share = sum.sampled_bytes / all.sampled_bytes;
  const double scale = static_cast<double>(small.bytes) / all.sampled_bytes;
  row.bytes += share * static_cast<double>(small.bytes);
  row.blocks += sum.sampled_blocks / all.sampled_blocks * static_cast<double>(small.blocks);
  const double variance = (1 - share) * (1 - share) * sum.variance + share * share * (all.variance - sum.variance);
  row.standard_error = scale * std::sqrt(variance);
  return row;
}

}  // namespace

peak_callers peak_callers_of(trace_source_view source, const heap_stacks& recorded, std::size_t largest_blocks) {
  const extend::clock_readings no_times;
  peak_finder found;
  {
    trace_replay replay{found, no_times};
    source.visit(replay);
  }
  space_at_peak at_peak;
  at_peak.space = found.space_with_stacks(recorded);
  at_peak.ordinal = found.spaces[at_peak.space].ordinal;
  trace_replay replay{at_peak, no_times};
  at_peak.replay = &replay;
  source.visit(replay);

  peak_callers result;
  result.space = replay.state().space_name(at_peak.space);
  result.bytes = found.spaces[at_peak.space].peak;
  result.missing_blocks = recorded.missing_blocks;
  std::unordered_map<extend::label, stack_sum> by_stack;
  stack_sum all;
  small_blocks small;
  for (const replayed_block& block : at_peak.blocks) {
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    const bool is_small = chance_of_stack(bytes, recorded) < 1;
    if (is_small) small = {small.bytes + bytes, small.blocks + 1};
    if (block.call_stack != 0) {
      const stack_sum sum = sum_of(block, recorded);
      by_stack[block.call_stack].add(sum);
      all.add(sum);
    } else if (!is_small) {
      result.bytes_without += bytes;
    }
  }
  result.sampled_blocks = all.sample;
  const bool is_divided = all.sample >= peak_callers::least_sample;
  if (!is_divided) {
    result.unsampled_bytes = small.bytes;
    result.unsampled_blocks = small.blocks;
  }
  named_stacks stacks{replay.state().names};
  std::unordered_map<std::string, stack_sum> by_caller;
  for (const auto& [stack, sum] : by_stack) by_caller[stacks.caller(stack)].add(sum);
  for (auto& [caller, sum] : by_caller) {
    if (!is_divided) sum.sample = 0;
    if (sum.sample != 0 || sum.blocks != 0) result.callers.push_back(row_of(caller, sum, all, small));
  }
  std::sort(result.callers.begin(), result.callers.end(), [](const caller_bytes& left, const caller_bytes& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.caller < right.caller;
  });
  std::erase_if(at_peak.blocks, [](const replayed_block& block) { return block.call_stack == 0; });
  const std::size_t kept = std::min(largest_blocks, at_peak.blocks.size());
  std::partial_sort(at_peak.blocks.begin(), at_peak.blocks.begin() + static_cast<std::ptrdiff_t>(kept), at_peak.blocks.end(),
                    [](const replayed_block& left, const replayed_block& right) {
                      return left.bytes != right.bytes ? left.bytes > right.bytes : left.ordinal < right.ordinal;
                    });
  for (std::size_t index = 0; index < kept; ++index) {
    const replayed_block& block = at_peak.blocks[index];
    result.largest.push_back({block.address, static_cast<std::int64_t>(block.bytes), stacks.caller(block.call_stack)});
  }
  return result;
}

void name_largest_blocks(profile& of, const peak_callers& callers) {
  for (space_profile& space : of.spaces) {
    if (space.name != callers.space || space.cumulative_peak != callers.bytes) continue;
    for (live_block& block : space.live_at_peak.largest_blocks) {
      const auto named = std::find_if(callers.largest.begin(), callers.largest.end(), [&](const peak_callers::named_block& each) {
        return each.address == block.address && each.bytes == block.bytes;
      });
      if (named != callers.largest.end() && block.name.empty()) block.name = named->caller;
    }
  }
}

std::optional<peak_callers> add_peak_callers(profile& of, trace_source_view source) {
  const std::optional<heap_stacks> recorded = recorded_stacks_of(of);
  if (!recorded) return {};
  std::size_t largest_blocks = 0;
  for (const space_profile& each : of.spaces) largest_blocks = std::max(largest_blocks, each.live_at_peak.largest_blocks.size());
  peak_callers callers = peak_callers_of(source, *recorded, largest_blocks);
  const space_profile* const space = of.find_space(callers.space);
  if (space == nullptr || callers.bytes != space->cumulative_peak) return {};
  name_largest_blocks(of, callers);
  return callers;
}

}  // namespace memprof::inline MEMPROF_ABI
