#include <memprof/report/text.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_summary_text {

using memprof::parse_tracker_log;

namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

std::string error_of(const std::string& text) {
  try {
    (void)parse_tracker_log(text, "run.log");
  } catch (const memprof::error& fault) {
    return fault.what();
  }
  return "no error";
}

/// Twenty steps; `leak` bytes stay of each.
memprof::profile training(std::int64_t leak) {
  memprof::profile profile;
  profile.complete = true;
  profile.process.command_line = "train";
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cuda:0";
  const auto add = [&](const char* name, std::int64_t peak, std::int64_t change) {
    profile.segments.emplace_back().name = name;
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment_peak = peak;
    usage.segment_change = change;
    space.cumulative_current += change;
    usage.cumulative_current = space.cumulative_current;
  };
  add("MODEL  CREATION", 2 * mib, 2 * mib);
  for (int step = 0; step < 20; ++step) {
    add("FORWARD_PASS", 5 * mib, 5 * mib);
    add("BACKWARD_PASS", mib, leak - 5 * mib);
  }
  space.cumulative_peak = 8 * mib + 12'345;
  space.peak_segment = 4;
  space.live_at_peak.bytes = space.cumulative_peak;
  space.live_at_peak.by_operation = {{"forward", space.cumulative_peak, 1}};
  space.live_at_peak.by_category = {{"activation", 6 * mib + 12'345, 12}, {"parameter", 2 * mib, 4}};
  profile.device = "gpu";
  space.capacity = 16 * mib;
  return profile;
}

bool within_three_digits(std::int64_t read, std::int64_t written) { return std::abs(read - written) <= std::abs(written) / 200; }

}  // namespace

TEST_CASE("summary text: it is read back as far as it tells") {
  for (const std::int64_t leak : {std::int64_t{0}, 100 * kib}) {
    for (const std::size_t columns : {std::size_t{80}, std::size_t{100}, std::size_t{200}}) {
      INFO("leak " << leak << ", " << columns << " columns");
      const memprof::profile written = training(leak);
      const std::string text = memprof::to_text(written, {.columns = columns});
      const auto read = parse_tracker_log("Number of parameters: 1,000\ntiny\n" + text + "after\n", "run.log");
      REQUIRE(read.size() == 1);
      const memprof::profile& profile = read[0];
      REQUIRE(profile.spaces.size() == 1);
      const memprof::space_profile& space = profile.spaces[0];
      CHECK(space.name == "cuda:0");
      CHECK(space.cumulative_peak == written.spaces[0].cumulative_peak);
      CHECK(space.cumulative_current == written.spaces[0].cumulative_current);
      CHECK(space.capacity == 16 * mib);
      CHECK(profile.device == "gpu");
      CHECK(profile.complete);
      CHECK(profile.provenance.format == "summary_text");
      CHECK(profile.provenance.section == "tiny");
      CHECK(profile.provenance.line == 3);
      CHECK(profile.segment_count == 41);
      REQUIRE(profile.segments_by_name.size() == 3);
      CHECK(profile.segments_by_name[0].name == "MODEL  CREATION");
      CHECK(profile.segments_by_name[2].count == 20);
      CHECK(space.peak_segment == 2);
      const memprof::segment_summary& backward = space.segments_by_name[2];
      CHECK(within_three_digits(backward.segment_change.first, leak - 5 * mib));
      CHECK(within_three_digits(backward.segment_change.sum, 20 * (leak - 5 * mib)));
      CHECK(within_three_digits(backward.segment_peak.greatest, mib));
      REQUIRE(space.segments.size() == 3);
      CHECK(within_three_digits(space.segments[2].cumulative_current, 2 * mib + leak));
      REQUIRE(space.live_at_peak.by_category.size() == 2);
      CHECK(space.live_at_peak.by_category[0].bytes + space.live_at_peak.by_category[1].bytes == space.cumulative_peak);
      CHECK(within_three_digits(space.live_at_peak.by_category[1].bytes, 2 * mib));
      REQUIRE(memprof::rows_of<memprof::model_parameters>(profile.facts).size() == 1);
      REQUIRE(profile.provenance.remarks.size() == 1);
      CHECK(profile.provenance.remarks[0].find("(3 of 41): pass the trace, or a profile written by write_json") !=
            std::string::npos);
    }
  }
}

TEST_CASE("summary text: the place of the peak is read in the words of this version and of earlier ones") {
  const std::string now = memprof::to_text(training(0), {.columns = 200});
  constexpr std::string_view place = " in BACKWARD_PASS, step 2 of 20";
  REQUIRE(now.find(place) != std::string::npos);
  std::string before = now;
  before.replace(before.find(place), place.size(), " in BACKWARD_PASS of step 2 of 20");
  for (const std::string& text : {now, before}) CHECK(parse_tracker_log(text).at(0).spaces[0].peak_segment == 2);
}

TEST_CASE("summary text: it is read back if it names the space of its table") {
  memprof::profile written = training(100 * kib);
  written.spaces.push_back(written.spaces[0]);
  written.spaces[1].cumulative_peak = mib;
  for (const bool all_spaces : {false, true}) {
    for (const char* const name : {"cuda:0", "a memory space that is too long for a column of the table of segments"}) {
      written.spaces[0].name = name;
      const auto read = parse_tracker_log(memprof::to_text(written, {.columns = 80, .all_spaces = all_spaces}));
      REQUIRE(read.size() == 1);
      CHECK(read[0].spaces[0].cumulative_peak == written.spaces[0].cumulative_peak);
      CHECK(read[0].segments_by_name.size() == 3);
    }
  }
}

TEST_CASE("summary text: colours, labels of ranks that interleave, and both formats in one log") {
  const std::string colored = memprof::to_text(training(0), {.is_colored = true});
  CHECK(parse_tracker_log(colored).at(0).spaces[0].cumulative_peak == 8 * mib + 12'345);

  std::string other = memprof::to_text(training(0));
  other.replace(other.find("8.01 MiB (8,400,953 B)"), 22, "9.00 MiB (9,437,184 B)");
  std::string log;
  const std::string plain = memprof::to_text(training(0));
  for (std::size_t left = 0, right = 0; left < plain.size() || right < other.size();) {
    const auto take = [&](const std::string& from, std::size_t& at, const char* label) {
      if (at >= from.size()) return;
      const std::size_t end = from.find('\n', at);
      log += label + from.substr(at, end - at + 1);
      at = end + 1;
    };
    take(plain, left, "[1,0]<stdout>:");
    take(other, right, "[1,1]<stdout>:");
  }
  const std::string tracker = memprof::to_text(training(0), {.format = memprof::text_format::tracker});
  const auto read = parse_tracker_log(log + "later\n" + tracker);
  REQUIRE(read.size() == 3);
  CHECK(read[0].process.rank == 0);
  CHECK(read[0].spaces[0].cumulative_peak == 8 * mib + 12'345);
  CHECK(read[1].process.rank == 1);
  CHECK(read[1].spaces[0].cumulative_peak == 9 * mib);
  CHECK(read[2].provenance.format == "tracker_log");
}

TEST_CASE("summary text: what is too little for an answer says what to read instead") {
  memprof::profile profile = training(0);
  profile.segments.clear();
  profile.spaces[0].segments.clear();
  profile.spaces[0].peak_segment = -1;
  CHECK(error_of("\n" + memprof::to_text(profile)) ==
        "cannot read a memory summary from 'run.log': line 2 begins a summary of memprof without a table of segments: pass the "
        "trace, or a profile written by write_json");
  CHECK(error_of("memprof   is a profiler\n").find("no line looks like part of one") != std::string::npos);
  const std::string text = memprof::to_text(training(0));
  for (std::size_t size = 0; size < text.size(); ++size) (void)error_of(text.substr(0, size));  // wherever it is cut off
}

}  // namespace memprof_tests::format_summary_text
