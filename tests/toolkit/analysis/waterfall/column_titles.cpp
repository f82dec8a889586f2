#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/waterfall/column_titles.hpp>
#include <memprof/trace/run_mode.hpp>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

namespace memprof_tests::analysis_column_titles {

using memprof::names_apart;
using memprof::run_mode;
using names = std::vector<std::string>;

namespace {

/// The titles of runs with these modes, of which the first have titles.
names titles_of(const std::vector<run_mode>& modes, const names& files, const names& titles = {}) {
  std::vector<memprof::compared_run> columns(modes.size());
  for (std::size_t index = 0; index < modes.size(); ++index) {
    columns[index].mode = modes[index];
    if (index < titles.size()) columns[index].title = titles[index];
  }
  memprof::title_columns(columns, files);
  names made;
  for (const memprof::compared_run& column : columns) made.push_back(column.title);
  return made;
}

}  // namespace

TEST_CASE("waterfall: paths are named by as many of their last parts as tell them apart") {
  CHECK(names_apart({"a/x.memtrace", "b/y.memtrace"}) == names{"x.memtrace", "y.memtrace"});
  CHECK(names_apart({"a/x", "b/x"}) == names{"a/x", "b/x"});
  CHECK(names_apart({"/t/r/a/x", "/t/r/b/x", "/t/s/b/x"}) == names{"r/a/x", "r/b/x", "s/b/x"});
  CHECK(names_apart({"/r/x", "/s/x"}) == names{"/r/x", "/s/x"});  // the whole paths
  CHECK(names_apart({"x", "/x"}) == names{"x", "/x"});
  CHECK(names_apart({"a/x", "a/x"}) == names{"a/x (1)", "a/x (2)"});
  CHECK(names_apart({}).empty());
}

TEST_CASE("waterfall: columns are titled by the modes of their runs") {
  constexpr run_mode simulated = run_mode::no_dispatch;
  constexpr run_mode real = run_mode::normal;
  CHECK(titles_of({simulated, real}, {"a", "b"}) == names{"no dispatch", "measured"});
  CHECK(titles_of({simulated, simulated, real}, {"a", "b", "c"}) == names{"estimate", "no dispatch", "measured"});
  CHECK(titles_of({simulated, real}, {"b"}, {"estimate"}) == names{"estimate", "measured"});
}

TEST_CASE("waterfall: columns of the same mode are titled by their files") {
  constexpr run_mode real = run_mode::normal;
  CHECK(titles_of({real, real}, {"a/x", "b/x"}) == names{"a/x", "b/x"});
  // An estimate comes from no file.
  CHECK(titles_of({run_mode::no_dispatch, real, real}, {"a/x", "b/x"}, {"estimate"}) == names{"estimate", "a/x", "b/x"});
}

}  // namespace memprof_tests::analysis_column_titles
