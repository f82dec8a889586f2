#include <memprof/toolkit/format/csv_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>

namespace memprof_tests::detail_csv_text {

namespace {

using memprof::detail::csv_quotes;

std::string cell(std::string_view text, csv_quotes quotes = csv_quotes::where_needed) {
  std::string out;
  memprof::detail::append_csv_text(out, text, quotes);
  return out;
}

}  // namespace

TEST_CASE("csv_text: a cell has quotes where RFC 4180 needs them") {
  CHECK(cell("plain text") == "plain text");
  CHECK(cell("") == "");
  CHECK(cell("a,b") == "\"a,b\"");
  CHECK(cell("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(cell("two\nlines") == "\"two\nlines\"");
  CHECK(cell("plain", csv_quotes::always) == "\"plain\"");
  CHECK(cell("", csv_quotes::always) == "\"\"");
}

TEST_CASE("csv_text: no cell is a formula to a spreadsheet") {
  CHECK(cell("=1+1") == "'=1+1");
  CHECK(cell("+1") == "'+1");
  CHECK(cell("-1") == "'-1");
  CHECK(cell("@SUM(A1)") == "'@SUM(A1)");
  CHECK(cell("\t=1") == "'\t=1");
  CHECK(cell("\r=1") == "\"'\r=1\"");
  CHECK(cell("\n=1") == "\"'\n=1\"");
  CHECK(cell("\xef\xbc\x9d"
             "1") ==
        "'\xef\xbc\x9d"
        "1");  // FULLWIDTH EQUALS SIGN
  CHECK(cell("=HYPERLINK(\"x\",\"y\")") == "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  CHECK(cell("=1", csv_quotes::always) == "\"'=1\"");
  CHECK(cell("a=b") == "a=b");
  CHECK(cell("forward/attention-2") == "forward/attention-2");
}

}  // namespace memprof_tests::detail_csv_text
