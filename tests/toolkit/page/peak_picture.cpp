#include <memprof/toolkit/page/peak_picture.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace memprof_tests::report_peak_picture {

using memprof::analyzed_space;
using memprof::peak_part;
using memprof::picture_format;
using namespace memprof::detail;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A bar of 1000 MB with the given parts in MB: other, model, gradients, optimizer, activations.
analyzed_space bar(std::vector<std::int64_t> parts) {
  memprof::profile profile;
  profile.exact = true;
  profile.provenance.section = "run";
  profile.provenance.format = "tracker_log";  // whose units are MB and KB
  profile.spaces.emplace_back();
  analyzed_space result{std::make_shared<const memprof::profile>(profile), 0, {}};
  result.breakdown.peak = 1000 * mib;
  result.breakdown.device_memory = 1200 * mib;
  for (std::size_t index = 0; index < parts.size(); ++index) result.breakdown.parts[index] = parts[index] * mib;
  return result;
}

std::string script(const std::vector<analyzed_space>& bars, const std::string& title = {}) {
  return memprof::peak_picture_script(bars, title, picture_format::png, "picture.png");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("peak picture: parts stand on each other up to the peak") {
  const auto slices = stacked(bar({100, 200, 50, 400, 250}).breakdown);
  CHECK(slices[0].low == 0);
  CHECK(slices[0].high == 100 * mib);
  CHECK(slices[1].high == 300 * mib);
  CHECK(slices[2].high == 350 * mib);
  CHECK(slices[3].high == 750 * mib);
  CHECK(slices[4].low == 750 * mib);
  CHECK(slices[4].high == 1000 * mib);
  for (const bar_slice& slice : slices) CHECK(!slice.cut);
}

TEST_CASE("peak picture: no bar is taller than its peak") {
  const auto slices = stacked(bar({0, 400, 300, 500, 200}).breakdown);
  CHECK(slices[3].low == 700 * mib);
  CHECK(slices[3].high == 1000 * mib);
  CHECK(slices[3].cut);
  CHECK(slices[4].high == 1000 * mib);
  CHECK(slices[4].low == 1000 * mib);
  const std::string text = script({bar({0, 400, 300, 500, 200})});
  CHECK(contains(text, "'500.00 MB (cut at the peak)'"));
  CHECK(contains(text, "'(parts: 1,400.00 MB, not live at once)'.\"\\n\".'Total: 1,000.00 MB'"));
}

TEST_CASE("peak picture: a negative part has no height") {
  const auto slices = stacked(bar({930, 100, 0, 0, -30}).breakdown);
  CHECK(slices[4].low == slices[4].high);
  CHECK(slices[1].high == 1000 * mib);
}

TEST_CASE("peak picture: colours, order, limit and labels are those of the script") {
  const std::string text = script({bar({100, 200, 50, 400, 250})});
  const std::size_t plot = text.find("\nplot ");
  std::size_t last = plot;
  for (const std::string part :
       {"'#cccccc' title 'Other'", "'#4da6b8' title 'Model Parameters'", "'#e789ab' title 'Gradients Overhead'",
        "'#cec0fa' title 'Optimizer State'", "'#e38a42' title 'Activations'",
        "1200.000000 with lines dashtype 2 linewidth 3 linecolor rgb '#ff0000' title 'Device Memory Limit'"}) {
    INFO(part);
    const std::size_t found = text.find(part);
    REQUIRE(found != std::string::npos);
    CHECK(found > last);
    last = found;
  }
  CHECK(contains(text, "set yrange [0:1350.000000]"));  // an eighth above the limit
  CHECK(contains(text, "'Total: 1,000.00 MB'"));
  CHECK(contains(text, "'400.00 MB'"));
  CHECK(contains(text, "$part_3 << END_OF_PART\n0 350.000000 750.000000\nEND_OF_PART\n"));
}

TEST_CASE("peak picture: bars of different devices have a limit each") {
  analyzed_space larger = bar({0, 1000, 0, 0, 0});
  larger.breakdown.device_memory = 2400 * mib;
  const std::string text = script({bar({0, 1000, 0, 0, 0}), larger});
  CHECK(contains(text,
                 "$limits << END_OF_LIMITS\n-0.5 1200.000000\n0.5 1200.000000\n\n0.5 2400.000000\n1.5 2400.000000\n\n"
                 "END_OF_LIMITS\nplot "));
  CHECK(contains(text, "$limits using 1:2 with lines dashtype 2 linewidth 3 linecolor rgb '#ff0000'"));
  CHECK(!contains(script({bar({0, 1000, 0, 0, 0}), bar({1000, 0, 0, 0, 0})}), "$limits"));
}

TEST_CASE("peak picture: parts that no bar has are not in the legend") {
  const std::string text = script({bar({0, 600, 0, 400, 0})});
  CHECK(!contains(text, "title 'Other'"));
  CHECK(!contains(text, "title 'Activations'"));
  CHECK(contains(text, "title 'Model Parameters'"));
}

TEST_CASE("peak picture: gradients that were live at the peak are no overhead") {
  analyzed_space live = bar({0, 500, 500, 0, 0});
  live.breakdown.parts_are_live_at_peak = true;
  CHECK(contains(script({live}), "title 'Gradients'"));
  CHECK(contains(script({live, bar({0, 500, 500, 0, 0})}), "title 'Gradients Overhead'"));
}

TEST_CASE("peak picture: text from logs is text for gnuplot, whatever it holds") {
  CHECK(gnuplot_string("it's") == "'it''s'");
  CHECK(gnuplot_string("`rm`\"\\n@x") == "'`rm`\"\\n@x'");
  CHECK(gnuplot_string("a\nb\x7f") == "'a?b?'");
  CHECK(gnuplot_string("größe") == "'größe'");
  CHECK(gnuplot_string("\xff\xc3") == std::string{"'?"} + "?'");
  CHECK(gnuplot_string("\xed\xa0\x80") == std::string{"'?"} + "?" + "?'");  // a surrogate
  analyzed_space hostile = bar({0, 1000, 0, 0, 0});
  memprof::profile profile = *hostile.profile;
  profile.provenance.section = "'\nsystem 'touch x'\n";
  hostile.profile = std::make_shared<const memprof::profile>(profile);
  CHECK(!contains(script({hostile}, "'\nsystem 'touch y'\n"), "\nsystem"));
}

TEST_CASE("peak picture: long names have several lines, and no character is torn") {
  CHECK(gnuplot_lines("one two three", 7) == "'one two'.\"\\n\".'three'");
  CHECK(gnuplot_lines("abcdefghij", 4) == "'abcd'.\"\\n\".'efgh'.\"\\n\".'ij'");
  CHECK(gnuplot_lines("aaa bbb ccc ddd", 3) == "'aaa'.\"\\n\".'bbb'.\"\\n\".'ccc...'");
  CHECK(gnuplot_lines("abcö", 4) == "'abcö'");
  CHECK(gnuplot_lines("", 4) == "''");
}

TEST_CASE("peak picture: a device that is far larger than the peak is in the legend, and the bar still fills the picture") {
  analyzed_space small = bar({0, 1000, 0, 0, 0});
  small.breakdown.device_memory = 3001 * mib;
  const std::string text = script({small});
  CHECK(contains(text, "set yrange [0:1125.000000]"));
  CHECK(contains(text,
                 "NaN with lines dashtype 2 linewidth 3 linecolor rgb '#ff0000' title "
                 "'Limit: 3,001.00 MB (above)'"));
  small.breakdown.device_memory = 3000 * mib;
  CHECK(contains(script({small}), "3000.000000 with lines"));
}

TEST_CASE("peak picture: without a device there is no limit") {
  analyzed_space small = bar({0, 1000, 0, 0, 0});
  small.breakdown.device_memory.reset();
  const std::string text = script({small});
  CHECK(!contains(text, "Limit"));
  CHECK(contains(text, "set yrange [0:1125.000000]"));
}

TEST_CASE("peak picture: what is below 1 MB has a unit in which it can be read") {
  CHECK(amount_text(5 * mib / 4) == "1.25 MiB");
  CHECK(amount_text(mib - 1) == "1,024.00 KiB");
  CHECK(amount_text(1536) == "1.50 KiB");
  CHECK(amount_text(12) == "12 B");
  CHECK(amount_text(0) == "0.00 MiB");
  CHECK(amount_text(-3 * mib) == "-3.00 MiB");
  analyzed_space tiny = bar({0, 0, 0, 0, 0});
  tiny.breakdown.device_memory.reset();
  tiny.breakdown.peak = 2048;
  tiny.breakdown.parts = {1024, 1024, 0, 0, 0};
  const std::string text = script({tiny});
  CHECK(contains(text, "set ylabel 'Memory (KB)'"));
  CHECK(contains(text, "$part_0 << END_OF_PART\n0 0.000000 1.000000\n"));
  CHECK(contains(text, "'Total: 2.00 KB'"));
  // Only a tracker's log calls 2^10 bytes KB.
  memprof::profile other;
  other.spaces.emplace_back();
  tiny.profile = std::make_shared<const memprof::profile>(other);
  CHECK(contains(script({tiny}), "set ylabel 'Memory (KiB)'"));
  CHECK(contains(script({tiny}), "'Total: 2.00 KiB'"));
}

TEST_CASE("peak picture: labels beside a bar keep their distance, within the picture") {
  using places = std::vector<double>;
  CHECK(spread({0, 0, 0}, 10, 100) == places{5, 15, 25});
  CHECK(spread({40, 70}, 10, 100) == places{40, 70});
  CHECK(spread({40, 41, 99}, 10, 100) == places{40, 50, 95});
  CHECK(spread({97, 98, 99}, 10, 100) == places{75, 85, 95});
  CHECK(spread({}, 10, 100).empty());
}

TEST_CASE("peak picture: nothing and no memory still make a script") {
  CHECK(contains(script({}), "plot NaN notitle"));
  analyzed_space empty = bar({});
  empty.breakdown.peak = 0;
  empty.breakdown.device_memory.reset();
  CHECK(contains(script({empty}), "set yrange [0:1.000000]"));
}

}  // namespace memprof_tests::report_peak_picture
