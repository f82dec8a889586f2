#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/text_format.hpp>

#include "sequence_settings.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

// A summary has at most 40 lines of 100 columns, whatever is in the profile: names of any length and any bytes, many spaces, many
// segments, every kind of fault at once.

namespace {

class random_profiles {
 public:
  explicit random_profiles(std::uint64_t seed) : random_(seed) {}

  memprof::profile next(std::size_t segments, std::size_t spaces) {
    memprof::profile made;
    made.complete = coin();
    made.exact = coin();
    made.device = coin() ? name() : "";
    made.mode = coin() ? memprof::run_mode::no_dispatch : memprof::run_mode::normal;
    made.process.command_line = name();
    made.duration_ns = bytes();
    std::vector<std::string> names(1 + random_() % 40);
    for (std::string& one : names) one = name();
    const bool has_number = coin() && coin();
    for (std::size_t index = 0; index < segments; ++index) {
      made.segments.emplace_back().name = has_number ? "step " + std::to_string(index) : names[random_() % names.size()];
    }
    made.spaces.resize(spaces);
    for (memprof::space_profile& space : made.spaces) fill(space, segments);
    for (std::size_t count = random_() % 50; count > 0; --count) add_operation(made);
    if (coin()) add_facts(made);
    if (coin()) add_checkpoints(made);
    for (std::int64_t* const count : {&made.anomalies.dropped_events, &made.anomalies.reentrant_events,
                                      &made.anomalies.rejected_events, &made.anomalies.unbalanced_scopes,
                                      &made.anomalies.missing_events, &made.anomalies.too_deep_scopes, &made.cost.events}) {
      if (coin()) *count = bytes();
    }
    return made;
  }

  bool coin() { return random_() % 2 == 0; }
  std::size_t below(std::size_t limit) { return random_() % limit; }

 private:
  std::int64_t bytes() { return static_cast<std::int64_t>((random_() >> 2) >> (random_() % 60)); }

  std::string name() {
    static const std::string parts[] = {"attention",        "/",         " ",  "\n", "\x1b[31m", "\xff", "\xe8\xa8\x93",
                                        "\xf0\x9f\x9a\x80", "e\xcc\x81", ": ", "-",  "1"};
    std::string result;
    const std::size_t lengths[] = {0, 2, 5, 20, 200};
    for (std::size_t count = lengths[random_() % 5]; count > 0; --count) result += parts[random_() % 12];
    return result;
  }

  memprof::live_set live() {
    memprof::live_set set;
    set.bytes = bytes();
    for (std::size_t count = random_() % 20; count > 0; --count) set.by_operation.push_back({name(), bytes(), bytes()});
    for (std::size_t count = random_() % 12; count > 0; --count)
      set.by_category.push_back({coin() ? "activation" : name(), bytes(), 1});
    set.remaining_operations = bytes();
    return set;
  }

  void add_checkpoints(memprof::profile& made) {
    made.checkpoints.resize(random_() % 128);
    made.checkpoint_count = static_cast<std::int64_t>(made.checkpoints.size()) + (coin() ? bytes() : 0);
    for (memprof::checkpoint& point : made.checkpoints) {
      if (coin()) point.name = name();
      point.time_ns = bytes();
      point.live_bytes = bytes();
      point.live_blocks = bytes();
      point.spaces.resize(random_() % 3);
      for (memprof::checkpoint_usage& usage : point.spaces) {
        usage.largest_blocks.resize(random_() % 4);
        for (memprof::live_block& block : usage.largest_blocks) {
          block.bytes = bytes();
          block.name = name();
          block.shape = name();
          block.operation = name();
        }
      }
    }
  }

  void fill(memprof::space_profile& space, std::size_t segments) {
    space.name = name();
    space.cumulative_peak = coin() ? bytes() : 0;
    space.cumulative_current = bytes();
    space.peak_segment = static_cast<std::int64_t>(random_() % (segments + 1)) - 1;
    space.peak_time_ns = bytes();
    space.peak_operation = name();
    space.live_at_peak = live();
    if (coin()) space.current_by_category = live().by_category;
    if (coin()) space.growing = {{name(), static_cast<double>(bytes()), bytes() - 1, bytes(), bytes()}, {"", 0.5, -1, 1, 8}};
    if (coin()) space.capacity = bytes();
    space.capacity_is_per_core = coin();
    if (coin()) {
      space.first_shortfall.requested = bytes();
      space.first_shortfall.operation = name();
      space.first_shortfall.core = name();
      space.first_shortfall.remedy = {{name(), bytes(), 1}};
    }
    space.segments.resize(segments);
    std::int64_t current = 0;
    const std::int64_t growth = coin() ? 1 + static_cast<std::int64_t>(random_() % 10'000) : 0;
    for (memprof::segment_usage& usage : space.segments) {
      usage.segment_peak = bytes() >> 20;
      usage.segment_change = (bytes() - bytes()) >> 30;
      usage.cumulative_current = current += growth == 0 ? usage.segment_change : growth;
    }
    if (coin()) space.reserved.peak = bytes();
    space.active = {space.reserved.peak, space.reserved.peak / 2, {}, {}, {}, {}};
    if (coin()) space.streams = {{name(), name(), bytes(), 0, 1, bytes(), 0}, {name(), "", 0, 0, 0, 0, 0}};
    if (coin()) space.cores.ranges = {{name(), {}}};
    if (coin()) space.out_of_memory = {{bytes(), 0, 0, 0, name(), 0, 0}};
    for (memprof::event_tally* const tally :
         {&space.anomalies.unmatched_frees, &space.anomalies.mismatched_sizes, &space.anomalies.overlapping_blocks,
          &space.anomalies.replaced_allocations, &space.anomalies.null_allocations, &space.anomalies.unknown_annotations,
          &space.anomalies.untracked_allocations, &space.reserved.unmatched_releases, &space.reserved.replaced_reservations}) {
      if (coin()) *tally = {bytes(), bytes()};
    }
  }

  void add_operation(memprof::profile& made) {
    memprof::operation_profile& operation = made.operations.emplace_back();
    operation.path = name();
    for (const memprof::space_profile& space : made.spaces) {
      operation.usage.emplace_back().space = space.name;
      operation.usage.back().live = bytes();
    }
  }

  void add_facts(memprof::profile& made) {
    std::vector<memprof::missing_source> missing(random_() % 12);
    for (memprof::missing_source& one : missing) one = {name(), name()};
    made.facts = {
        memprof::extend::to_table(missing),
        memprof::extend::to_table<memprof::approximated_operation>({{name(), name(), bytes(), bytes()}}),
        memprof::extend::to_table<memprof::unknown_read>({{name(), name(), bytes(), bytes()}}),
        memprof::extend::to_table<memprof::assumed_size>({{name(), name(), name(), bytes(), bytes(), bytes(), bytes()}})};
    for (std::size_t count = random_() % 30; count > 0; --count) made.facts.push_back({name(), {name()}, {{std::int64_t{1}}}});
  }

  std::mt19937_64 random_;
};

/// One assertion a text: Catch2 takes longer for each line than the text does.
void check_size(const std::string& text, std::size_t columns, std::size_t max_lines) {
  std::size_t lines = 0;
  std::string faults;
  for (std::size_t begin = 0; begin < text.size(); ++lines) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (end == std::string::npos) faults += "no line end: " + line + '\n';
    if (memprof::detail::display_width(line) > columns) faults += "too wide: " + line + '\n';
    if (memprof::detail::on_one_line(line) != line) faults += "not printable: " + memprof::detail::on_one_line(line) + '\n';
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (lines > max_lines) faults += std::to_string(lines) + " lines:\n" + text;
  CHECK(faults == "");
}

}  // namespace

TEST_CASE("text size: at most forty lines of the columns there are, for any profile") {
  const std::uint64_t seed = memprof::property::base_seed();
  const std::uint64_t rounds = std::clamp<std::uint64_t>(memprof::property::sequence_count() / 50, 30, 150);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    INFO("MEMPROF_TEST_SEED=" << seed << ", round " << round);
    random_profiles profiles{seed + round};
    const memprof::profile made = profiles.next(round % 100, profiles.below(30));
    for (const std::size_t columns : {60, 80, 100, 200}) check_size(memprof::to_text(made, {.columns = columns}), columns, 40);
    check_size(memprof::to_text(made, {.columns = 100, .max_lines = 32}), 100, 32);
    check_size(memprof::to_text(made, {.columns = 1, .max_lines = 0}), 60, 32);
    // What was asked for may take more lines, but never wider ones.
    check_size(memprof::to_text(made, {.columns = 80,
                                       .owners = 30,
                                       .largest_blocks = 5,
                                       .streams = 3,
                                       .checkpoints = 100,
                                       .core_ranges = 3,
                                       .all_spaces = true,
                                       .all_faults = true,
                                       .all_segments = true}),
               80, static_cast<std::size_t>(-1));
  }
}

TEST_CASE("text size: a run of 100,000 segments has a summary as long as one of ten") {
  random_profiles profiles{memprof::property::base_seed()};
  check_size(memprof::to_text(profiles.next(100'000, 3)), 100, 40);
}

TEST_CASE("text size: a category of a profile that another program wrote may hold a line end") {
  memprof::profile made;
  memprof::space_profile& space = made.spaces.emplace_back();
  space.name = "gpu";
  space.cumulative_peak = space.live_at_peak.bytes = 100;
  space.live_at_peak.by_category = {{"a\nb\x1b[31m", 100, 1}};
  space.live_at_peak.by_operation = {{"matmul", 100, 1}};
  check_size(memprof::to_text(made), 100, 40);
}
