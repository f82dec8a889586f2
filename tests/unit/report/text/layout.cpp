#include <memprof/report/text/table_text.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/text_line.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof_tests::report_text_layout {

using memprof::detail::cell_text;
using memprof::detail::marked_text;
using memprof::detail::wrap;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("text layout: in a line that is too long, the longest names are shortened, those of twelve columns never") {
  marked_text line;
  line.add("in ").add_name("TWELVE_CHARS").add(" of ").add_name(std::string(40, 'a') + std::string(40, 'z'));
  line.add(", operation ").add_name("forward/step");
  CHECK(wrap(line.text(), 60, 1, false) == "in TWELVE_CHARS of aaaaaaa…zzzzzzz, operation forward/step\n");
  // Before a short name loses anything, the end of the line is cut.
  CHECK(wrap(line.text(), 40, 1, false) == "in TWELVE_CHARS of aaaaaa…zzzzz, …\n");
}

TEST_CASE("text layout: a command line that is cut keeps both ends, a path of operations its last component") {
  const std::string text = "./train --a-long-option --another --yet another";
  marked_text command;
  command.add_command(text);
  CHECK(cell_text(command.text(), 20, false).text == "./train --…t another");
  marked_text path;
  path.add_name("train/a_step_of_many/the_innermost");
  CHECK(cell_text(path.text(), 22, false).text == "train/a_…the_innermost");
}

TEST_CASE("text layout: a cell keeps its short names and loses its end") {
  marked_text cell;
  cell.add("63.2 ms in ").add_name("STEP").add(", step 20 of 20");
  const auto shown = [&](std::size_t columns) { return cell_text(cell.text(), columns, false).text; };
  CHECK(shown(30) == "63.2 ms in STEP, step 20 of 20");
  CHECK(shown(29) == "63.2 ms in STEP, step 20 of …");
  CHECK(shown(16) == "63.2 ms in STEP…");
  CHECK(shown(13) == "63.2 ms in …");
  CHECK(shown(6) == "63.2 …");
  marked_text names;
  names.add("in ").add_name("of_thirteen_c").add(" and ").add_name("a_name_that_is_longer_than_it");
  CHECK(cell_text(names.text(), 34, false).text == "in of_thirteen_c and a_name…han_it");
  // A name alone has nothing else to lose.
  CHECK(cell_text(marked_text{}.add("  ").add_name("OPTIMIZER_STEP").text(), 10, false).text == "  OPTI…TEP");
}

TEST_CASE("text layout: whatever the width, a table of spaces does not cut the name of a segment to nothing") {
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.device = "gpu";
  for (int step = 0; step < 20; ++step) profile.segments.push_back({"STEP", 0, 0, -1, -1});
  for (const char* const name : {"cuda:0", "cpu", "a_memory_space_with_a_long_name"}) {
    memprof::space_profile& space = profile.spaces.emplace_back();
    space.name = name;
    space.segments.resize(20);
    space.cumulative_peak = space.capacity = std::int64_t{1} << 30;
    space.peak_segment = 19;
    space.peak_time_ns = 63'200'000;
  }
  for (std::size_t columns = 60; columns <= 120; ++columns) {
    const std::string text = memprof::to_text(profile, {.columns = columns});
    const std::string spaces = text.substr(text.find("\nSpaces "), text.find("\nAccuracy") - text.find("\nSpaces "));
    INFO(spaces);
    if (columns >= 70) CHECK(contains(spaces, "63.2 ms"));
    CHECK(!contains(spaces, "S…"));
    CHECK(!contains(spaces, "in  "));
    CHECK(!contains(spaces, "in ,"));
    if (columns >= 100) CHECK(contains(spaces, "63.2 ms in STEP"));
  }
}

}  // namespace memprof_tests::report_text_layout
