#include <memprof/toolkit/page/run_picture.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/palette.hpp>

#include <toolkit/analysis/analyzed.hpp>
#include <toolkit/format/tenstorrent/tracker_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::report_run_picture {

using memprof::composition;
using memprof::drawn_space;
using memprof::picture_format;
using namespace memprof::detail;
using namespace memprof_tests;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// Two segments, of one and three milliseconds; 8 MiB in the second.
memprof::profile two_segments() {
  memprof::profile profile;
  profile.exact = true;
  profile.duration_ns = 4'000'000;
  profile.segments = {{"MODEL_CREATION", 0, 1'000'000}, {"FORWARD_PASS", 1'000'000, 4'000'000}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "dram";
  space.cumulative_peak = 8 * mib;
  space.cumulative_current = 2 * mib;
  space.peak_segment = 1;
  space.peak_time_ns = 2'500'000;
  space.segments.resize(2);
  space.segments[0].segment = "MODEL_CREATION";
  space.segments[0].segment_peak = space.segments[0].segment_change = space.segments[0].cumulative_current = mib;
  space.segments[1].segment = "FORWARD_PASS";
  space.segments[1].segment_peak = 7 * mib;
  space.segments[1].segment_change = mib;
  space.segments[1].cumulative_current = 2 * mib;
  space.timeline.points = {{0, mib, mib}, {1'000'000, 2 * mib, mib}, {2'500'000, 8 * mib, 3 * mib}};
  space.live_at_peak.bytes = 8 * mib;
  space.live_at_peak.by_category = {{"activation", 7 * mib, 3}, {"parameter", mib, 1}};
  space.live_at_peak.by_operation = {{"forward/attention", 6 * mib, 1}, {"", mib, 1}};
  space.live_at_peak.remaining_bytes = mib;
  space.live_at_peak.remaining_operations = 2;
  return profile;
}

std::string script(const memprof::profile& profile, const memprof::run_picture_options& options = {}) {
  std::vector<drawn_space> spaces;
  for (const memprof::space_profile& space : profile.spaces) spaces.push_back({&profile, &space, {}});
  return memprof::run_picture_script(spaces, options, picture_format::png, "picture.png");
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<std::string> names_of(const composition_rows& rows) {
  std::vector<std::string> names;
  for (const composition_row& row : rows.rows) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("run picture: the timeline has each stretch's peak and end, in the units of its axes, up to the capture's end") {
  const std::string text = script(two_segments());
  CHECK(contains(text,
                 "$timeline << END_OF_TIMELINE\n"
                 "0.000000 1.000000 1.000000\n"
                 "1.000000 2.000000 1.000000\n"
                 "2.500000 8.000000 3.000000\n"
                 "4.000000 3.000000 3.000000\n"
                 "END_OF_TIMELINE\n"));
  CHECK(contains(text, "set xrange [0:4.000000]"));
  CHECK(contains(text, "set xlabel 'time (ms)'"));
  CHECK(contains(text, "set ylabel 'live bytes (MiB)'"));
  CHECK(contains(text, "'dram: peak 8.00 MiB after 2.50 ms in FORWARD_PASS (2 of 2), 2.00 MiB at the end'"));
  CHECK(contains(text, "at first 2.500000, first 8.000000 point"));
}

TEST_CASE("run picture: a capacity is drawn where it does not press the rest together") {
  memprof::profile profile = two_segments();
  profile.spaces[0].capacity = 10 * mib;
  CHECK(contains(script(profile), "'capacity 10.00 MiB'"));
  CHECK(contains(script(profile), "set yrange [0:11.500000]"));
  profile.spaces[0].capacity = 100 * mib;
  CHECK(!contains(script(profile), "capacity"));
  CHECK(contains(script(profile), "set yrange [0:9.200000]"));
  profile.spaces[0].capacity = 10 * mib;
  profile.spaces[0].capacity_is_per_core = true;
  CHECK(!contains(script(profile), "capacity"));
}

TEST_CASE(
    "run picture: names of segments lie where there is room, stand where there is little, and are left out where there is none") {
  const memprof::profile profile = two_segments();
  const segment_bands wide = bands_of(profile, 4'000'000, 1200);
  REQUIRE(wide.names.size() == 2);
  CHECK(!wide.names[0].is_upright);  // 14 letters of 14 dots in 300
  CHECK(wide.names[0].middle == 0.125);
  CHECK(wide.names[1].middle == 0.625);
  CHECK(wide.bands == std::vector<std::pair<double, double>>{{0.25, 1.0}});
  CHECK(wide.height == 40);
  const segment_bands narrow = bands_of(profile, 4'000'000, 400);
  REQUIRE(narrow.names.size() == 2);
  CHECK(narrow.names[0].is_upright);  // in 100 dots
  CHECK(!narrow.names[1].is_upright);
  CHECK(narrow.height == 14 * 14 + 34);
  const segment_bands tiny = bands_of(profile, 4'000'000, 100);
  REQUIRE(tiny.names.size() == 1);  // the first has 25 dots
  memprof::profile many;
  many.exact = true;
  many.segments.resize(101);
  CHECK(bands_of(many, 4'000'000, 1200).bands.empty());
}

TEST_CASE("run picture: the peak's composition is by category if there are any, else by operation, or as asked") {
  memprof::profile profile = two_segments();
  memprof::space_profile& space = profile.spaces[0];
  const composition_rows by_category = composition_of(profile, space, composition::automatic);
  CHECK(by_category.title == "live at the peak, by category");
  CHECK(names_of(by_category) == std::vector<std::string>{"activation", "parameter"});
  CHECK(by_category.rows[0].colour == colour_of(memprof::category::activation));
  const composition_rows by_operation = composition_of(profile, space, composition::operation);
  CHECK(by_operation.title == "live at the peak, by operation");
  CHECK(names_of(by_operation) == std::vector<std::string>{"forward/attention", "(no operation)", "2 smaller operations"});
  for (const std::string_view name : memprof::detail::category_names)  // the colour of a category would be taken for it
    CHECK(by_operation.rows[0].colour != colour_of(memprof::category_from_string(name).value_or(memprof::category::other)));
  space.live_at_peak.by_category = {{"other", 8 * mib, 4}};
  CHECK(composition_of(profile, space, composition::automatic).title == by_operation.title);
  CHECK(composition_of(profile, space, composition::category).title == by_category.title);
  CHECK(contains(script(profile), "'6.00 MiB   75.0 %'"));
}

TEST_CASE("run picture: the rows of a composition sum to the peak, however many owners there are") {
  memprof::profile profile = two_segments();
  memprof::live_set& live = profile.spaces[0].live_at_peak;
  live.by_operation.clear();
  live.remaining_bytes = live.remaining_operations = 0;
  for (int index = 0; index < 16; ++index) live.by_operation.push_back({"operation " + std::to_string(index), mib / 2, 1});
  const composition_rows rows = composition_of(profile, profile.spaces[0], composition::operation);
  REQUIRE(rows.rows.size() == 9);
  CHECK(rows.rows[8].name == "8 others");
  std::int64_t sum = 0;
  for (const composition_row& row : rows.rows) sum += row.bytes;
  CHECK(sum == 8 * mib);
}

TEST_CASE("run picture: a log has its segments and the parts of its phases") {
  const memprof::profile summary = memprof::parse_tracker_log(memory_efficient_text()).front();
  const std::string text = script(summary);
  CHECK(!contains(text, "$timeline"));
  CHECK(!contains(text, " after "));  // a log has no times
  // 5572.01 live before it and 996.35 more; 5764.96 at its end
  CHECK(contains(text, "\n3 6568.36"));
  CHECK(contains(text, "'the peak by phases, not all live at once'"));
  const composition_rows rows = composition_of(summary, summary.spaces[0], composition::automatic);
  CHECK(names_of(rows) == std::vector<std::string>{"Activations", "Optimizer State", "Gradients Overhead", "Model Parameters"});
  CHECK(rows.rows[3].bytes == hundredths(186325));
}

TEST_CASE("run picture: several spaces stand below each other, each with its own unit") {
  memprof::profile profile = two_segments();
  profile.spaces.push_back(profile.spaces[0]);
  memprof::space_profile& small = profile.spaces[1];
  small.name = "cpu";
  small.cumulative_peak = 2048;
  const std::string text = script(profile, {.title = "two"});
  CHECK(contains(text, "set ylabel 'live bytes (MiB)'"));
  CHECK(contains(text, "set ylabel 'live bytes (KiB)'"));
  CHECK(contains(text, "'cpu: peak 2.00 KiB"));
  // A title of 80, and twice 500 for the timeline, its names, 110 and two rows of 56.
  const segment_bands bands = bands_of(profile, 4'000'000, 1600 - 190 - 40);
  CHECK(contains(text, " size 1600," + std::to_string(80 + 2 * (500 + bands.height + 110 + 2 * 56)) + ' '));
  CHECK(text.find("'two'") == text.rfind("'two'"));
}

TEST_CASE("run picture: text is text for gnuplot, whatever it holds") {
  memprof::profile profile = two_segments();
  profile.segments[0].name = profile.spaces[0].segments[0].segment = "'\nsystem 'touch x'\n`y`";
  profile.spaces[0].live_at_peak.by_operation[0].owner = "'\nsystem 'touch x'";
  CHECK(!contains(script(profile, {.title = "'\nsystem 'touch x'\n", .by = composition::operation}), "\nsystem"));
}

TEST_CASE("run picture: nothing to draw still makes a script") {
  memprof::profile profile;
  profile.exact = true;
  profile.spaces.emplace_back();
  const std::string text = script(profile);
  CHECK(contains(text, "'what was live at the peak is unknown'"));
  CHECK(contains(text, "unset multiplot\n"));
}

TEST_CASE("run picture: times have three digits in a unit that fits") {
  const auto text = [](std::int64_t ns) { return time_unit_for(ns).text(ns); };
  CHECK(text(1'490'000) == "1.49 ms");
  CHECK(text(168'000'000) == "168 ms");
  CHECK(text(12'345'000'000) == "12.3 s");
  CHECK(text(99'960'000) == "100 ms");
  CHECK(text(1'500) == "1.50 \xc2\xb5s");
}

TEST_CASE("run picture: long names that begin and end alike show where they differ") {
  const std::string end = "/at::detail::empty_cuda/c10::cuda::NativeCachingAllocator::malloc (CUDACachingAllocator.cpp:0)";
  memprof::profile profile = two_segments();
  profile.spaces[0].live_at_peak.by_operation = {{"__clone/thread_main/linear" + end, 5 * mib, 1},
                                                 {"__clone/thread_main/softmax" + end, 3 * mib, 1}};
  const std::string text = script(profile, {.by = composition::operation});
  CHECK(contains(text, "linear…"));
  CHECK(contains(text, "softmax…"));
}

}  // namespace memprof_tests::report_run_picture
