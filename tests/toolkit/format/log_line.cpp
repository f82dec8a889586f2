#include <memprof/toolkit/format/log_line.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::format_log_line {

using namespace memprof::detail;

TEST_CASE("log line: colours, links and control characters are taken away, text in UTF-8 stays") {
  CHECK(visible_text("\x1b[1;32m--- A ---\x1b[0m") == "--- A ---");
  CHECK(visible_text("\x1b]8;;http://host\x1b\\name\x1b]8;;\a!") == "name!");
  CHECK(visible_text("\x1b(Bword\x07\x7f") == "Bword");
  CHECK(visible_text("größe\tµ") == "größe\tµ");
}

TEST_CASE("log line: a control sequence that is cut off ends with the line") {
  CHECK(visible_text("text\x1b") == "text");
  CHECK(visible_text("text\x1b[1;3") == "text");
  CHECK(visible_text("text\x1b]8;;abc") == "text");
  CHECK(visible_text("text\x1b]8;;abc\x1b") == "text");
}

TEST_CASE("log line: launchers' labels tell the rank") {
  CHECK(bracketed_rank("[1,13]<stdout>:") == "13");
  CHECK(bracketed_rank("[3] ") == "3");
  CHECK(bracketed_rank("[default7]:") == "7");
  CHECK(bracketed_rank("[12:30:05] ") == "");
  CHECK(bracketed_rank("[info] ") == "");
  CHECK(bracketed_rank("[") == "");
  CHECK(labelled_rank(" 2: ") == "2");
  CHECK(labelled_rank("12:30:05 ") == "");
  CHECK(labelled_rank("17:") == "");  // grep -n
  CHECK(spelled_rank("2026-01-01 12:00:00 [Rank 4] ") == "4");
  CHECK(spelled_rank("INFO rank=11 ") == "11");
  CHECK(spelled_rank("rank0: ") == "0");
  CHECK(spelled_rank("franks 3") == "");
  CHECK(spelled_rank("rank") == "");
}

TEST_CASE("log line: MB are 2^20 bytes, with any sign and groups of digits") {
  CHECK(megabytes_at(" 2112.40 MB, ") == 2'215'011'942);  // 2214592512 + 419430.4
  CHECK(megabytes_at(": +0.00 MB") == 0);
  CHECK(megabytes_at(" -7780.87 MB") == -8'158'833'541);  // 8158833541.12
  CHECK(megabytes_at(" 1,024 MB") == 1'073'741'824);
  CHECK(megabytes_at(" 3MB") == 3'145'728);
  CHECK(!megabytes_at(" X MB"));
  CHECK(!megabytes_at(" 5 KB"));
  CHECK(!megabytes_at(" nan MB"));
  CHECK(!megabytes_at(" 1.2.3 MB"));
  CHECK(!megabytes_at(" 1099511627776 MB"));  // 2^60 bytes
  CHECK(!megabytes_at(""));
}

TEST_CASE("log line: numbers of parameters may be grouped") {
  CHECK(count_at(" 969369600 ") == 969'369'600);
  CHECK(count_at(" 1,134,596,096") == 1'134'596'096);
  CHECK(count_at("12, 345") == 12);
  CHECK(!count_at("none"));
  CHECK(!count_at("0"));
  CHECK(!count_at("-5"));
  CHECK(!count_at("99999999999999999999"));
}

}  // namespace memprof_tests::format_log_line
