#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/line_reader.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace memprof_tests::format_line_reader {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// The lines of a text; one that is cut has a `~` behind it.
std::vector<std::string> lines_of(const std::string& text, std::size_t longest = 1 << 20) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("text");
  std::ofstream{path, std::ios::binary} << text;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  memprof::detail::line_reader reader{file.get(), "text", longest};
  std::vector<std::string> lines;
  while (reader.next()) {
    lines.push_back(std::string{reader.line()} + (reader.is_cut() ? "~" : ""));
    CHECK(reader.number() == lines.size());
  }
  CHECK_FALSE(reader.next());
  return lines;
}

TEST_CASE("line reader: lines come one by one, and a last one without an end is cut", "[format]") {
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == std::vector<std::string>{""});
  CHECK(lines_of("a\n\nbc\n") == std::vector<std::string>{"a", "", "bc"});
  CHECK(lines_of("a\nbc") == std::vector<std::string>{"a", "bc~"});
}

TEST_CASE("line reader: a line may be longer than the buffer, but not than the limit", "[format]") {
  constexpr std::size_t buffer = std::size_t{64} * 1024;
  for (const std::size_t size : {buffer - 1, buffer, buffer + 1, 3 * buffer}) {
    const std::string first(size, 'x');
    CHECK(lines_of(first + "\nshort\n") == std::vector<std::string>{first, "short"});
    CHECK(lines_of(first + "\nshort\n", size).size() == 2);
    CHECK_THROWS_MATCHES(lines_of("short\n" + first + "\n", size - 1), memprof::error,
                         MessageMatches(ContainsSubstring("cannot read 'text': line 2: longer than")));
    CHECK_THROWS_AS(lines_of(first, size - 1), memprof::error);
  }
}

}  // namespace

}  // namespace memprof_tests::format_line_reader
