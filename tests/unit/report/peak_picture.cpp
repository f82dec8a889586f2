#include <memprof/report/peak_picture.hpp>

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/format/memory_summary.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using memprof::analyzed_summary;
using memprof::peak_part;
using memprof::picture_format;
using namespace memprof::detail;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A bar of 1000 MB with the given parts in MB: other, model, gradients, optimizer, activations.
analyzed_summary bar(std::vector<std::int64_t> parts) {
  analyzed_summary result;
  result.summary.section = "run";
  result.breakdown.peak = 1000 * mib;
  result.breakdown.device_memory = 1200 * mib;
  for (std::size_t index = 0; index < parts.size(); ++index) result.breakdown.parts[index] = parts[index] * mib;
  return result;
}

std::string script(const std::vector<analyzed_summary>& bars, const std::string& title = {}) {
  return memprof::peak_picture_script(bars, title, picture_format::png, "picture.png");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("peak picture: parts stand on each other up to the peak") {
  const auto slices = stacked(bar({100, 200, 50, 400, 250}).breakdown);
  CHECK(slices[0].low == 0);
  CHECK(slices[0].high == 100);
  CHECK(slices[1].high == 300);
  CHECK(slices[2].high == 350);
  CHECK(slices[3].high == 750);
  CHECK(slices[4].low == 750);
  CHECK(slices[4].high == 1000);
  for (const bar_slice& slice : slices) CHECK(!slice.cut);
}

TEST_CASE("peak picture: no bar is taller than its peak") {
  const auto slices = stacked(bar({0, 400, 300, 500, 200}).breakdown);
  CHECK(slices[3].low == 700);
  CHECK(slices[3].high == 1000);
  CHECK(slices[3].cut);
  CHECK(slices[4].high == 1000);
  CHECK(slices[4].low == 1000);
  const std::string text = script({bar({0, 400, 300, 500, 200})});
  CHECK(contains(text, "'500 MB (cut at the peak)'"));
  CHECK(contains(text, "'Total: 1000 MB (parts: 1400 MB, not live at once)'"));
}

TEST_CASE("peak picture: a negative part has no height") {
  const auto slices = stacked(bar({930, 100, 0, 0, -30}).breakdown);
  CHECK(slices[4].low == slices[4].high);
  CHECK(slices[1].high == 1000);
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
  CHECK(contains(text, "set yrange [0:1320.000000]"));  // 1.1 times the limit
  CHECK(contains(text, "'Total: 1000 MB'"));
  CHECK(contains(text, "'400 MB'"));
  CHECK(contains(text, "$part_3 << END_OF_PART\n0 350.000000 750.000000\nEND_OF_PART\n"));
}

TEST_CASE("peak picture: bars of different devices have a limit each") {
  analyzed_summary larger = bar({0, 1000, 0, 0, 0});
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
  analyzed_summary live = bar({0, 500, 500, 0, 0});
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
  analyzed_summary hostile = bar({0, 1000, 0, 0, 0});
  hostile.summary.section = "'\nsystem 'touch x'\n";
  CHECK(!contains(script({hostile}, "'\nsystem 'touch y'\n"), "\nsystem"));
}

TEST_CASE("peak picture: long names have several lines, and no character is torn") {
  CHECK(gnuplot_lines("one two three", 7) == "'one two'.\"\\n\".'three'");
  CHECK(gnuplot_lines("abcdefghij", 4) == "'abcd'.\"\\n\".'efgh'.\"\\n\".'ij'");
  CHECK(gnuplot_lines("aaa bbb ccc ddd", 3) == "'aaa'.\"\\n\".'bbb'.\"\\n\".'ccc...'");
  CHECK(gnuplot_lines("abcö", 4) == "'abcö'");
  CHECK(gnuplot_lines("", 4) == "''");
}

TEST_CASE("peak picture: nothing and no memory still make a script") {
  CHECK(contains(script({}), "plot 0.000000 with lines"));
  analyzed_summary empty;
  CHECK(contains(script({empty}), "set yrange [0:1.000000]"));
}
