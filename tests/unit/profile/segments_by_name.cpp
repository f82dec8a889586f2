#include <memprof/detail/vector.hpp>
#include <memprof/profile/segments_by_name.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::analysis_segments_by_name {

using memprof::value_summary;
using memprof::detail::segments_of_name;

namespace {

/// A profile without rows by name, as those of earlier versions: "A" "B" "A" "B" "A", which change by 10, -6, 10, -6, 10.
memprof::profile five_segments() {
  memprof::profile profile;
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cpu";
  std::int64_t current = 0;
  for (int index = 0; index < 5; ++index) {
    const bool is_a = index % 2 == 0;
    profile.segments.emplace_back().name = is_a ? "A" : "B";
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment_peak = is_a ? 10 + index : 0;
    usage.allocations = is_a ? 10 : 0;
    usage.segment_change = is_a ? 10 : -6;
    current += usage.segment_change;
    usage.cumulative_current = current;
  }
  return profile;
}

}  // namespace

TEST_CASE("segments by name: they are folded from the segments where a profile has no rows") {
  const memprof::profile profile = five_segments();
  const memprof::vector<memprof::detail::segments_of_name> names = memprof::detail::segments_by_name(profile, profile.spaces[0]);
  REQUIRE(names.size() == 2);
  CHECK(names[0].name == "A");
  CHECK(names[0].count == 3);
  CHECK(names[0].first_number == 0);
  CHECK(names[0].last_number == 4);
  CHECK(names[0].segment_peak == value_summary{10, 14, 10, 14, 36, -1, -1});
  CHECK(names[0].segment_change == value_summary{10, 10, 10, 10, 30, -1, -1});
  CHECK(names[0].allocations == value_summary{10, 10, 10, 10, 30, -1, -1});
  CHECK(names[0].cumulative_current == value_summary{10, 18, 10, 18, 42, -1, -1});  // 10, 14, 18
  CHECK_THAT(names[0].growth.per_step, Catch::Matchers::WithinAbs(4, 1e-12));
  CHECK_THAT(names[0].growth.r_squared, Catch::Matchers::WithinAbs(1, 1e-12));
  CHECK(names[1].count == 2);
  CHECK(names[1].segment_change == value_summary{-6, -6, -6, -6, -12, -1, -1});
}

TEST_CASE("segments by name: the profile's own rows come first, since they know segments that are not kept") {
  memprof::profile profile = five_segments();
  memprof::named_segments& name = profile.segments_by_name.emplace_back();
  name.name = "A";
  name.count = 1000;
  name.last_number = 1999;
  memprof::segment_summary& usage = profile.spaces[0].segments_by_name.emplace_back();
  usage.segment_peak = {1, 2, 0, 9, 4000, 5, 6};
  usage.growth = {4, 0.5};
  profile.segment_count = 2000;
  profile.step_count = 1000;
  const memprof::vector<memprof::detail::segments_of_name> names = memprof::detail::segments_by_name(profile, profile.spaces[0]);
  REQUIRE(names.size() == 1);
  CHECK(names[0].count == 1000);
  CHECK(names[0].segment_peak == usage.segment_peak);
  CHECK(names[0].growth == usage.growth);
  CHECK(memprof::detail::count_of_segments(profile) == 2000);
  CHECK(memprof::detail::steps_of(profile).count == 1000);
}

TEST_CASE("segments by name: a step ends where a name comes again") {
  memprof::profile profile;
  for (const char* const name : {"MODEL", "F", "B", "F", "B", "END"}) profile.segments.emplace_back().name = name;
  const memprof::detail::segment_steps steps = memprof::detail::steps_of(profile);
  CHECK(steps.of_segment == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(steps.count == 2);
  CHECK(memprof::detail::steps_of(memprof::profile{}).count == 0);
}

TEST_CASE("segments by name: names that differ only in numbers are a family") {
  segments_of_name first{{"step 1/F", false, 1, 1, 0, 0, {}}, {}};
  segments_of_name second{{"step 12/F", false, 2, 1, 3, 5, {}}, {}};
  segments_of_name alone{{"MODEL 7", false, 1, 1, 1, 1, {}}, {}};
  first.segment_peak = {4, 4, 4, 4, 4, -1, -1};
  second.segment_peak = {1, 9, 1, 9, 10, -1, -1};
  first.allocations = {7, 7, 7, 7, 7, -1, -1};
  second.allocations = {2, 3, 2, 3, 5, -1, -1};
  const memprof::vector<memprof::detail::segments_of_name> families = memprof::detail::segments_by_family({first, alone, second});
  REQUIRE(families.size() == 2);
  CHECK(families[0].name == "step */F");
  CHECK(families[0].count == 3);
  CHECK(families[0].kept == 2);
  CHECK(families[0].segment_peak == value_summary{4, 9, 1, 9, 14, -1, -1});
  CHECK(families[0].allocations == value_summary{7, 3, 2, 7, 12, -1, -1});
  CHECK(families[0].last_number == 5);
  CHECK(families[1].name == "MODEL 7");
}

}  // namespace memprof_tests::analysis_segments_by_name
