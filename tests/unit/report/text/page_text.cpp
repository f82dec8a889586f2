#include <memprof/report/text/page_text.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/page.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::report_text_page_text {

using memprof::detail::page_line;

namespace {

std::string text_of(const std::vector<memprof::detail::laid_out>& lines) {
  std::string text;
  for (const memprof::detail::laid_out& line : lines) text += line.text + '\n';
  return text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("page text: in a line that is too long, the longest names are shortened, those of twelve columns never") {
  page_line line;
  line.add("in ").add_name("TWELVE_CHARS").add(" of ").add_name(std::string(40, 'a') + std::string(40, 'z'));
  line.add(", operation ").add_name("forward/step");
  CHECK(text_of(memprof::detail::broken(line, 60, 1, false)) == "in TWELVE_CHARS of aaaaaaa…zzzzzzz, operation forward/step\n");
  // Before a short name loses anything, the end of the line is cut.
  CHECK(text_of(memprof::detail::broken(line, 40, 1, false)) == "in TWELVE_CHARS of aaaaaa…zzzzz, …\n");
}

TEST_CASE("page text: a command line that is cut keeps both ends, a path of operations its last component") {
  const std::string text = "./train --a-long-option --another --yet another";
  page_line command;
  command.add_command(text);
  CHECK(memprof::detail::cell_text(command, 20, false).text == "./train --…t another");
  page_line path;
  path.add_name("train/a_step_of_many/the_innermost");
  CHECK(memprof::detail::cell_text(path, 22, false).text == "train/a_…the_innermost");
}

TEST_CASE("page text: a cell keeps its short names and loses its end") {
  page_line cell{"63.2 ms in "};
  cell.add_name("STEP").add(", step 20 of 20");
  const auto shown = [&](std::size_t columns) { return memprof::detail::cell_text(cell, columns, false).text; };
  CHECK(shown(30) == "63.2 ms in STEP, step 20 of 20");
  CHECK(shown(29) == "63.2 ms in STEP, step 20 of …");
  CHECK(shown(16) == "63.2 ms in STEP…");
  CHECK(shown(13) == "63.2 ms in …");
  CHECK(shown(6) == "63.2 …");
  page_line names{"in "};
  names.add_name("of_thirteen_c").add(" and ").add_name("a_name_that_is_longer_than_it");
  CHECK(memprof::detail::cell_text(names, 34, false).text == "in of_thirteen_c and a_name…han_it");
  // A name alone has nothing else to lose.
  CHECK(memprof::detail::cell_text(page_line{"  "}.add_name("OPTIMIZER_STEP"), 10, false).text == "  OPTI…TEP");
}

TEST_CASE("page text: whatever the width, a table of spaces does not cut the name of a segment to nothing") {
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
    const std::string spaces = text.substr(text.find("\nSpaces "), text.find("\nNumbers") - text.find("\nSpaces "));
    INFO(spaces);
    if (columns >= 70) CHECK(contains(spaces, "63.2 ms"));
    CHECK(!contains(spaces, "S…"));
    CHECK(!contains(spaces, "in  "));
    CHECK(!contains(spaces, "in ,"));
    if (columns >= 100) CHECK(contains(spaces, "63.2 ms in STEP"));
  }
}

}  // namespace memprof_tests::report_text_page_text
