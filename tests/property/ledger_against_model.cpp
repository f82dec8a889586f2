#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/contradictions.hpp>
#include <property/fold_model.hpp>
#include <property/growth_model.hpp>
#include <property/ledger_model_profile.hpp>
#include <property/random_sequence.hpp>
#include <property/sequence_settings.hpp>
#include <property/sequence_text.hpp>
#include <property/training_sequence.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace memprof;
using namespace memprof::extend;
using namespace memprof::property;

constexpr std::array<std::string_view, label_count> label_texts{"forward",
                                                                "attention",
                                                                "a/b",
                                                                "",
                                                                "STEP",
                                                                "MODEL_CREATION",
                                                                "x",
                                                                "y",
                                                                "wte\x1f[65, 128]\x1f"
                                                                "float32",
                                                                "only_name",
                                                                "\x1f\x1f"
                                                                "bfloat16",
                                                                "too\x1fmany\x1f"
                                                                "fields\x1fhere"};
constexpr std::array<std::string_view, space_count> space_texts{"cpu", "cuda:0", "cuda:1", "dram", "l1", "host"};
constexpr double ns_per_stamp = 0.5;

/// The names of all sequences, for the ledger and for the model.
class name_tables {
 public:
  name_tables() {
    // An empty text may not be the first in a table, and label n is the text of index n - 1: hence the check.
    for (const std::string_view text : label_texts) {
      in_order_ = in_order_ && labels_.intern(text) == model.labels.size() + 1;
      model.labels.emplace_back(text);
    }
    for (std::size_t id = 0; id < space_count; ++id) {
      space_labels_[id] = labels_.intern(space_texts[id]);
      model.spaces.emplace_back(space_texts[id]);
    }
    // Labels behind the annotations belong to the spaces; the model must know their texts too.
    for (const std::string_view text : space_texts) model.labels.emplace_back(text);
    model.first_stamp = first_stamp;
    model.ns_per_stamp = ns_per_stamp;
    clock_.add(first_stamp, 0);
    constexpr std::uint64_t far = std::uint64_t{1} << 40;
    clock_.add(first_stamp + far, static_cast<std::int64_t>(ns_per_stamp * static_cast<double>(far)));
  }

  [[nodiscard]] bool in_order() const { return in_order_; }
  [[nodiscard]] detail::ledger_names ledger(bool is_complete) const {
    return {labels_, space_labels_.data(), clock_, is_complete};
  }

  model_names model;

 private:
  detail::label_table labels_;
  std::array<label, memprof::extend::ledger::max_spaces> space_labels_{};
  clock_readings clock_;
  bool in_order_ = true;
};

[[nodiscard]] const name_tables& names() {
  static const name_tables tables;
  return tables;
}

/// Feeds steps [first, last), the events of one thread in runs of at most `longest_run`.
void feed(ledger& fed, const std::vector<step>& steps, std::size_t first, std::size_t last, std::size_t longest_run) {
  std::vector<event> run;
  while (first < last) {
    if (steps[first].is_segment_end) {
      fed.end_segment(steps[first].recorded.label, steps[first].recorded.stamp);
      ++first;
      continue;
    }
    run.clear();
    const std::uint32_t thread = steps[first].thread;
    while (first < last && run.size() < longest_run && !steps[first].is_segment_end && steps[first].thread == thread) {
      run.push_back(steps[first++].recorded);
    }
    fed.apply(run.data(), run.data() + run.size(), thread);
  }
}

constexpr std::uint64_t end_stamp = 1'000'000'000;
constexpr label end_label = 5;

[[nodiscard]] profile of_model(const sequence& fed) {
  ledger_model model{fed.options, first_stamp};
  for (unsigned space = 0; space < space_count; ++space) {
    model.limit(space, fed.capacities[space], fed.are_per_core[space]);
    model.place(space, fed.memories[space]);
  }
  for (const step& each : fed.steps) {
    if (each.is_segment_end) {
      model.end_segment(each.recorded.label, each.recorded.stamp);
    } else {
      model.apply(each.thread, each.recorded);
    }
  }
  if (fed.is_complete) model.end_segment(end_label, end_stamp);
  profile full = model.build(names().model, fed.is_complete, std::string{version_string});
  add_growing(full, model, names().model, fed.options.segment_names);
  return fold_model{std::move(full), fed.options, model.durations(), model.joint_peaks(), ns_per_stamp}.build();
}

void limit(ledger& fed, const sequence& limits) {
  for (std::uint8_t space = 0; space < space_count; ++space) {
    if (!fed.limit(space, limits.capacities[space], limits.are_per_core[space])) throw std::bad_alloc{};
    if (!fed.place(space, limits.memories[space])) throw std::bad_alloc{};
  }
}

/// What differs between the ledger's and the model's profiles of a sequence; empty if nothing does.
[[nodiscard]] std::string against_model(const sequence& fed) {
  ledger events{fed.options, first_stamp};
  limit(events, fed);
  feed(events, fed.steps, 0, fed.steps.size(), fed.steps.size());
  if (fed.is_complete) events.end_segment(end_label, end_stamp);
  const profile built = detail::build_profile(events, names().ledger(fed.is_complete));
  profile expected = of_model(fed);
  accept_rounding(expected, built);
  return difference(built, expected);
}

/// Where the ledger's profile of a sequence contradicts itself; empty if it does nowhere.
[[nodiscard]] std::string against_itself(const sequence& fed) {
  ledger events{fed.options, first_stamp};
  limit(events, fed);
  feed(events, fed.steps, 0, fed.steps.size(), fed.steps.size());
  if (fed.is_complete) events.end_segment(end_label, end_stamp);
  const profile built = detail::build_profile(events, names().ledger(fed.is_complete));
  std::string text;
  for (const space_profile& space : built.spaces) {
    for (const std::string& sentence : contradictions(built, space)) text += "  " + space.name + ": " + sentence + '\n';
  }
  for (const memory_profile& memory : built.memories) {
    for (const std::string& sentence : contradictions(built, memory)) text += "  " + memory.name + ": " + sentence + '\n';
  }
  return text;
}

/// What differs when the runs are cut and somebody looks at the profile in between; empty if nothing does.
[[nodiscard]] std::string against_other_runs(const sequence& fed) {
  ledger whole{fed.options, first_stamp};
  limit(whole, fed);
  feed(whole, fed.steps, 0, fed.steps.size(), fed.steps.size());
  const profile expected = detail::build_profile(whole, names().ledger(false));
  for (const std::size_t longest_run : {std::size_t{1}, std::size_t{9}, std::size_t{32}}) {
    ledger cut{fed.options, first_stamp};
    limit(cut, fed);
    std::size_t first = 0;
    for (const std::size_t middle : {fed.steps.size() / 3, fed.steps.size() / 2, fed.steps.size()}) {
      feed(cut, fed.steps, first, middle, longest_run);
      first = middle;
      (void)detail::build_profile(cut, names().ledger(false));
    }
    std::string text = difference(detail::build_profile(cut, names().ledger(false)), expected);
    if (cut.events() != whole.events()) text += "  the number of events differs\n";
    if (!text.empty()) return "  with runs of at most " + std::to_string(longest_run) + " events\n" + text;
  }
  return {};
}

using property_check = std::function<std::string(const sequence&)>;

/// Leaves out ever shorter stretches of steps as long as the property still fails.
[[nodiscard]] sequence shrunk(sequence failing, const property_check& check) {
  for (std::size_t length = failing.steps.size(); length > 0; length = length / 2) {
    for (std::size_t first = 0; first < failing.steps.size();) {
      sequence shorter = failing;
      const auto begin = shorter.steps.begin() + static_cast<std::ptrdiff_t>(first);
      const std::size_t count = std::min(length, shorter.steps.size() - first);
      shorter.steps.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
      if (check(shorter).empty()) {
        first += length;
      } else {
        failing = shorter;
      }
    }
  }
  return failing;
}

/// One in 40 sequences is long; every personality gets its share.
[[nodiscard]] sequence sequence_number(std::uint64_t seed, std::uint64_t index) {
  const personality& kind = personalities[index % personalities.size()];
  return sequence_generator{kind, seed + index}.make(index % 41 == 40 ? 6 : 1);
}

void check_all(const char* property, std::uint64_t count, const property_check& check) {
  const std::uint64_t seed = base_seed();
  std::printf("%s: %llu sequences, MEMPROF_TEST_SEED=%llu\n", property, static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(seed));
  for (std::uint64_t index = 0; index < count; ++index) {
    const sequence made = sequence_number(seed, index);
    if (check(made).empty()) continue;
    const sequence minimal = shrunk(made, check);
    FAIL("MEMPROF_TEST_SEED=" << seed << ", sequence " << index << " of personality '" << made.personality << "', shrunk to "
                              << minimal.steps.size() << " steps:\n"
                              << to_code(minimal) << check(minimal));
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("property: every number of a profile equals that of a brute-force model, for random sequences of events") {
  REQUIRE(names().in_order());
  check_all("model", sequence_count(), against_model);
}

TEST_CASE("property: who grows in a profile is who grows by a brute-force model, in random trainings") {
  std::int64_t growing = 0, several = 0, outside = 0, reserved = 0, late = 0, unseen_begin = 0, in_parts = 0, none = 0;
  for (std::uint64_t index = 0; index < 150; ++index) {
    const sequence made = training_sequence{base_seed() + index}.make();
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", training " << index);
    REQUIRE(against_model(made) == "");
    if (index % 8 == 0) REQUIRE(against_other_runs(made) == "");
    for (const space_profile& space : of_model(made).spaces) {
      growing += !space.growing.empty();
      none += space.growing.empty();
      several += space.growing.size() > 1;
      for (const owner_growth& owner : space.growing) {
        outside += owner.owner.empty();
        reserved += owner.owner == detail::reserved_beyond_blocks;
        late += owner.since_step > 0;
        unseen_begin += owner.since_step < 0;
        in_parts += owner.within_steps > 1;
      }
    }
  }
  std::size_t place = 0;
  for (const std::int64_t reached : {growing, several, outside, reserved, late, unseen_begin, in_parts, none}) {
    INFO("in place " << ++place << " of this list");
    CHECK(reached > 4);
  }
}

TEST_CASE("property: no profile of random events contradicts itself") {
  check_all("contradictions", sequence_count() / 10, against_itself);
}

TEST_CASE("property: it does not matter how events are cut into runs, or whether somebody looks at the profile in between") {
  check_all("runs", sequence_count() / 10, against_other_runs);
}

TEST_CASE("property: the random sequences reach every anomaly, tie and truncation that a profile can show") {
  std::int64_t unmatched = 0, replaced = 0, mismatched = 0, crossed = 0, unknown = 0, rejected = 0, unbalanced = 0, too_deep = 0;
  std::int64_t shortfalls = 0, later_shortfalls = 0, one_remedy = 0, several_remedies = 0, no_remedy = 0, own_remedy = 0;
  std::int64_t corrected = 0, room_left = 0;
  std::int64_t shortfalls_on_cores = 0, beside_others = 0, on_other_cores = 0;
  std::int64_t segments_on_cores = 0, peaks_apart = 0, elsewhere = 0, stale = 0;
  std::int64_t folded = 0, other_segments = 0, other_operations = 0, gaps = 0, growing = 0, long_steps = 0, lost_failures = 0;
  std::int64_t late_sums = 0;
  std::int64_t inferred = 0, adopted_late = 0, outlived = 0;
  std::int64_t awaited = 0, active_peaks = 0, unmatched_completions = 0, missing_completions = 0;
  std::int64_t shared = 0, lone = 0, joint_only = 0, crowded = 0, two_memories = 0;
  std::int64_t truncated = 0, joined = 0, ties = 0, late_spaces = 0, negative = 0, many_segments = 0, above_32_bits = 0;
  for (std::uint64_t index = 0; index < 1500; ++index) {
    const profile made = of_model(sequence_number(base_seed(), index));
    rejected += made.anomalies.rejected_events;
    unbalanced += made.anomalies.unbalanced_scopes;
    too_deep += made.anomalies.too_deep_scopes;
    many_segments += made.segment_count >= 100;
    folded += made.segment_count > static_cast<std::int64_t>(made.segments.size());
    other_segments += made.anomalies.other_segments;
    other_operations += made.anomalies.other_operations;
    long_steps += made.step_count > 20;
    for (std::size_t row = 1; row < made.segments.size(); ++row) {
      gaps += made.segments[row].number != made.segments[row - 1].number + 1;
    }
    two_memories += made.memories.size() > 1;
    for (const memory_profile& memory : made.memories) {
      std::int64_t holders = 0;
      bool is_own_peak = false;
      for (const owned_bytes& part : memory.spaces) {
        holders += part.bytes > 0;
        is_own_peak = is_own_peak || part.bytes == made.space(part.owner).cumulative_peak;
      }
      shared += holders > 1;
      lone += holders == 1;
      crowded += holders > 2;
      joint_only += holders > 1 && !is_own_peak;
    }
    for (const operation_profile& operation : made.operations) {
      for (const operation_usage& usage : operation.usage) {
        inferred += usage.inferred > 0 && usage.inferred < usage.allocated;
        adopted_late += operation.invocations == 0 && usage.self_allocated > 0;
        outlived += usage.inferred == 0 && usage.self_allocated > usage.self_peak && operation.invocations == 1 &&
                    usage.deallocation_count == 0;
      }
    }
    for (const space_profile& space : made.spaces) {
      for (const segment_summary& row : space.segments_by_name) {
        growing += row.growth.r_squared > 0.5 && row.growth.r_squared < 1;
        late_sums += row.allocations.first == 0 && row.allocations.sum != 0;
      }
      for (const out_of_memory_failure& failed : space.out_of_memory) {
        lost_failures += failed.segment < 0 && failed.segment_number >= 0;
      }
      awaited += space.active.current > space.cumulative_current;
      active_peaks += space.active.peak > space.cumulative_peak;
      unmatched_completions += space.active.unmatched_completions.count;
      missing_completions += space.active.missing_completions.count;
      unmatched += space.anomalies.unmatched_frees.count;
      replaced += space.anomalies.replaced_allocations.count;
      mismatched += space.anomalies.mismatched_sizes.count;
      crossed += space.anomalies.cross_thread_frees.count;
      unknown += space.anomalies.unknown_annotations.count;
      joined += space.timeline.events_per_point > 1;
      late_spaces += space.segments.size() > 1 && space.segments[0].allocation_count == 0;
      above_32_bits += space.cumulative_peak > std::int64_t{1} << 32;
      room_left += space.capacity != 0 && space.first_shortfall == capacity_shortfall{};
      if (const capacity_shortfall& full = space.first_shortfall; full.requested != 0) {
        ++shortfalls;
        later_shortfalls += full.segment > 0;
        no_remedy += full.remedy.empty();
        one_remedy += full.remedy.size() == 1 && full.remedy.front() != full.held.by_operation.front();
        several_remedies += full.remedy.size() > 1;
        own_remedy += full.remedy.size() == 1 && full.remedy.front().owner == full.operation;
        if (!full.core.empty()) {
          ++shortfalls_on_cores;
          on_other_cores += full.core != "0-0";
          beside_others += full.held.by_operation.size() > 1;
        }
        for (const live_block& then : full.held.largest_blocks) {
          for (const live_block& later : space.live_at_peak.largest_blocks) {
            corrected += then.address == later.address && then.operation == later.operation && then.category != later.category;
          }
        }
      }
      const core_peaks& peaks = space.cores.peaks;
      segments_on_cores += space.cores.segments.size() > 2;
      peaks_apart += peaks.total < peaks.circular_buffers + peaks.buffers && peaks.circular_buffers > 0 && peaks.buffers > 0;
      elsewhere += !peaks.busiest_core.empty() && peaks.busiest_core != "0-0";
      for (const segment_usage& usage : space.segments) {
        const live_set& set = usage.live_at_peak;
        truncated += set.remaining_operations != 0;
        negative += usage.segment_change < 0;
        // An ordinary event took the block away: no `event_sink` sends that.
        const auto segment = static_cast<std::size_t>(&usage - space.segments.data());
        stale += segment < space.cores.segments.size() && space.cores.segments[segment].total > set.bytes;
        ties += set.largest_blocks.size() >= 2 && set.largest_blocks[0].bytes == set.largest_blocks[1].bytes;
      }
    }
  }
  std::size_t place = 0;
  for (const std::int64_t reached : {folded,
                                     other_segments,
                                     other_operations,
                                     gaps,
                                     growing,
                                     long_steps,
                                     lost_failures,
                                     late_sums,
                                     inferred,
                                     adopted_late,
                                     outlived,
                                     awaited,
                                     active_peaks,
                                     unmatched_completions,
                                     missing_completions,
                                     shared,
                                     lone,
                                     joint_only,
                                     crowded,
                                     two_memories,
                                     unmatched,
                                     replaced,
                                     mismatched,
                                     crossed,
                                     unknown,
                                     rejected,
                                     unbalanced,
                                     truncated,
                                     joined,
                                     ties,
                                     late_spaces,
                                     negative,
                                     many_segments,
                                     above_32_bits,
                                     shortfalls,
                                     later_shortfalls,
                                     one_remedy,
                                     several_remedies,
                                     no_remedy,
                                     own_remedy,
                                     corrected,
                                     room_left,
                                     segments_on_cores,
                                     peaks_apart,
                                     elsewhere,
                                     stale,
                                     shortfalls_on_cores,
                                     on_other_cores,
                                     beside_others,
                                     too_deep}) {
    INFO("in place " << ++place << " of this list");
    CHECK(reached > 10);
  }
}
