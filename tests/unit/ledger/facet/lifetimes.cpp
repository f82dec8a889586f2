#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/lifetimes.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/facet_folds.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/trace/trace.hpp>
#include <property/ledger_model_profile.hpp>
#include <property/lifetime_model.hpp>
#include <property/random_sequence.hpp>
#include <property/sequence_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace memprof_tests::profile_lifetimes {

using memprof::lifetime_profile;
using memprof::lifetime_usage;
using memprof::passing_usage;
using memprof::extend::event;
using memprof::extend::event_kind;

namespace {

/// Events by name, each 100 ns after the last, and the profile of the trace that they are.
class driver {
 public:
  driver() {
    recorded_.info({});
    (void)name("cpu");
    recorded_.space({memprof::extend::cpu_space, 1, 0, false, 0});
  }

  void allocate(std::uint64_t address, std::uint64_t bytes) { add({0, address, bytes, 0, event_kind::allocate, 0, 0}); }
  void free(std::uint64_t address) { add({0, address, 0, 0, event_kind::deallocate, 0, 0}); }
  void begin(std::string_view text) { add({0, 1, 0, name(text), event_kind::scope_begin, 0, 0}); }
  void end(std::string_view text) { add({0, 1, 0, name(text), event_kind::scope_end, 0, 0}); }
  void snapshot(std::string_view text) { add({0, 0, 0, name(text), event_kind::segment_end, 0, 0}); }
  void add(event recorded) {
    recorded.stamp = stamp_ += 100;
    recorded_.events(&recorded, &recorded + 1, 1);
  }

  [[nodiscard]] memprof::profile whole(memprof::facets asked = memprof::facets::all) {
    if (!has_ended_) add({0, 0, 0, 0, event_kind::capture_end, memprof::extend::any_space, 0});
    has_ended_ = true;
    return memprof::profile_of(recorded_, asked);
  }
  [[nodiscard]] lifetime_profile lifetimes() { return whole().space("cpu").facets.lifetimes; }

 private:
  memprof::extend::label name(std::string_view text) {
    const memprof::extend::label id = labels_.intern(text);
    recorded_.name(id, text);
    return id;
  }

  memprof::trace recorded_;
  memprof::detail::label_table labels_;
  std::uint64_t stamp_ = 0;
  bool has_ended_ = false;
};

}  // namespace

TEST_CASE("lifetimes: by size and operation, in allocations between and in nanoseconds") {
  driver run;
  run.allocate(0x10, 100);  // at 100
  run.allocate(0x20, 200);  // at 200
  run.free(0x10);           // at 300: one allocation and 200 ns later
  run.allocate(0x10, 127);  // at 400
  run.free(0x10);           // at 500: none and 100 ns later
  run.snapshot("FIRST");
  run.begin("forward");     // at 700
  run.free(0x20);           // at 800: one and 600 ns later, in another segment
  run.allocate(0x30, 128);  // at 900, never freed
  run.end("forward");
  run.snapshot("SECOND");
  const lifetime_profile found = run.lifetimes();
  CHECK(found.rows == memprof::vector<lifetime_usage>{
                          {"", 64, 2, 227, 2, 227, 1, 2, 227, {0, 1, 0, 0}, {100, 200, 150, 64}, false},
                          {"", 128, 1, 200, 1, 200, 1, 0, 0, {1, 1, 1, 1}, {600, 600, 600, 512}, false},
                          {"forward", 128, 1, 128, 0, 0, 1, 0, 0, {}, {}, false},
                      });
  CHECK(found.segments_by_name == memprof::vector<passing_usage>{{"FIRST", 2, 227, 127}, {"SECOND", 0, 0, 0}});
  CHECK(found.untracked_count == 0);
}

TEST_CASE("lifetimes: an arena must hold what is live at once of the blocks that a segment also frees") {
  driver run;
  run.allocate(0x10, 100);
  run.allocate(0x20, 1000);  // stays
  run.allocate(0x30, 200);   // 100 + 200
  run.free(0x10);
  run.allocate(0x40, 50);
  run.free(0x30);
  run.free(0x40);
  run.snapshot("STEP");
  run.allocate(0x50, 10);
  run.free(0x20);  // from an earlier segment
  run.free(0x50);
  run.snapshot("STEP");
  run.allocate(0x60, 500);  // stays
  run.snapshot("STEP");
  CHECK(run.lifetimes().segments_by_name == memprof::vector<passing_usage>{{"STEP", 4, 360, 300}});
}

TEST_CASE("lifetimes: a segment that has not ended counts as far as it has come") {
  memprof::extend::trace_fold fold;
  memprof::following_fold following{fold};
  const event events[]{{10, 0x10, 100, 0, event_kind::allocate, 0, 0},
                       {20, 0x20, 30, 0, event_kind::allocate, 0, 0},
                       {30, 0x10, 0, 0, event_kind::deallocate, 0, 0},
                       {40, 0x99, 0, 0, event_kind::deallocate, 0, 0}};
  following.events(events, events + 4, 1);
  memprof::profile so_far = memprof::detail::build_profile_of(fold);
  following.fill(so_far);
  const lifetime_profile& found = so_far.spaces.front().facets.lifetimes;
  CHECK(found.segments_by_name == memprof::vector<passing_usage>{{"OPEN_SEGMENT", 1, 100, 100}});
  CHECK(found.untracked_count == 0);  // a free that matches no block is an anomaly of the space
}

TEST_CASE("lifetimes: nothing is followed unless it is asked for, and nothing else in the profile changes with it") {
  driver run;
  run.allocate(0x10, 100);
  run.free(0x10);
  run.snapshot("END");
  memprof::profile with = run.whole();
  const memprof::profile without = run.whole(memprof::facets::none);
  CHECK(without.spaces[0].facets == memprof::space_facets{});
  CHECK(with.spaces[0].facets.lifetimes.rows.size() == 1);
  with.spaces[0].facets = {};
  CHECK(with == without);
}

TEST_CASE("lifetimes: sizes and operations beyond the first 4096 share a row") {
  memprof::detail::space_lifetimes fold;
  std::uint64_t born = 0;
  for (std::uint32_t operation = 0; operation < 65; ++operation) {
    for (unsigned bits = 0; bits < 64; ++bits) {
      ++born;
      fold.allocated({born, std::uint64_t{1} << bits >> 1U, born << memprof::detail::block::thread_bits, operation}, born);
    }
  }
  const memprof::vector<std::string> paths(65, "operation");
  const memprof::vector<std::string> segments;
  const memprof::extend::clock_readings time;
  const lifetime_profile found = fold.build({paths, segments, false, time, 0});
  REQUIRE(found.rows.size() == 4097);
  const auto others = std::find_if(found.rows.begin(), found.rows.end(), [](const auto& row) { return row.stands_for_others; });
  REQUIRE(others != found.rows.end());
  CHECK(others->allocation_count == 64);
  CHECK(others->operation.empty());
}

TEST_CASE("lifetimes: the text says what an arena would hold and how many buffers would do") {
  driver run;
  run.begin("forward");
  for (int round = 0; round < 100; ++round) {
    run.allocate(0x10, 1 << 20);
    run.free(0x10);
  }
  run.allocate(0x20, 1 << 20);
  run.end("forward");
  run.snapshot("STEP");
  memprof::text_options options;
  options.columns = 200;
  const std::string text = memprof::to_text(run.whole(), options);
  INFO(text);
  CHECK(text.find("100 of 101 blocks lived within a single segment: 100 MiB of allocations that an arena of 1.00 MiB would "
                  "serve") != std::string::npos);
  CHECK(text.find("101 blocks of 1.00 MiB to 2.00 MiB by forward, at most 1 live at once") != std::string::npos);
  CHECK(memprof::to_text(run.whole(memprof::facets::none), options).find("arena") == std::string::npos);
}

namespace {

using namespace memprof::property;

[[nodiscard]] auto key_of(const lifetime_usage& row) { return std::tie(row.operation, row.least_size); }

/// What the facet and the model make of one sequence.
void compare(const sequence& fed) {
  memprof::detail::label_table labels;
  model_names names;
  for (std::uint32_t id = 1; id <= label_count; ++id) {
    names.labels.push_back("name " + std::to_string(id));
    REQUIRE(labels.intern(names.labels.back()) == id);
  }
  std::array<memprof::extend::label, memprof::extend::ledger::max_spaces> space_names{};
  memprof::extend::ledger events{fed.options, first_stamp};
  memprof::facet_folds facets;
  ledger_model model{fed.options, first_stamp};
  for (const step& each : fed.steps) {
    event recorded = each.recorded;
    if (each.is_segment_end) {
      model.end_segment(recorded.label, recorded.stamp);
      recorded.kind = event_kind::segment_end;
    } else {
      model.apply(each.thread, recorded);
    }
    memprof::detail::apply_and_notify(events, &recorded, &recorded + 1, each.thread, facets);
  }
  memprof::profile built =
      memprof::detail::build_profile(events, {labels, space_names.data(), memprof::extend::clock_readings{}, false});
  facets.fill(built, events, labels);
  const std::vector<std::uint32_t> ended = model.segment_labels();
  std::size_t index = 0;
  for (const auto& [id, lives] : model.lives()) {
    REQUIRE(index < built.spaces.size());
    lifetime_profile found = built.spaces[index++].facets.lifetimes;
    CHECK(found.untracked_count == 0);
    CHECK(std::is_sorted(found.rows.begin(), found.rows.end(),
                         [](const auto& left, const auto& right) { return left.allocations > right.allocations; }));
    const lifetime_model expected{model, names, lives};
    memprof::vector<lifetime_usage> rows = expected.rows();
    for (memprof::vector<lifetime_usage>* const table : {&rows, &found.rows}) {
      std::sort(table->begin(), table->end(), [](const auto& left, const auto& right) { return key_of(left) < key_of(right); });
    }
    CHECK(found.rows == rows);
    for (std::size_t row = 0; row < built.segments_by_name.size(); ++row) {
      const memprof::named_segments& named = built.segments_by_name[row];
      const bool is_open = row + 1 == built.segments_by_name.size();
      std::vector<std::size_t> members;
      for (std::size_t segment = 0; segment < ended.size() && !is_open; ++segment) {
        const std::string name = ended[segment] <= label_count ? names.labels[ended[segment] - 1] : std::string{};
        const bool has_row = std::any_of(built.segments_by_name.begin(), built.segments_by_name.end() - 1,
                                         [&](const auto& other) { return other.name == name && !other.stands_for_others; });
        if (has_row ? named.name == name && !named.stands_for_others : named.stands_for_others) members.push_back(segment);
      }
      if (is_open) members.push_back(ended.size());
      CHECK(found.segments_by_name.at(row) == expected.passing(named.name, members));
    }
  }
  CHECK(index == built.spaces.size());
}

}  // namespace

TEST_CASE("lifetimes: every number equals that of a brute-force model, for random sequences of events") {
  for (std::uint64_t index = 0; index < 600; ++index) {
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index);
    compare(sequence_generator{personalities[index % personalities.size()], base_seed() + index}.make(1));
  }
}

}  // namespace memprof_tests::profile_lifetimes
