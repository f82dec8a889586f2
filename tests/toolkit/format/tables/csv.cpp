#include <memprof/toolkit/format/tables/csv.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::report_csv {

namespace {

/// The records of a text by the grammar of RFC 4180; a fault ends with a field that says so.
std::vector<std::vector<std::string>> records_of(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  for (std::size_t at = 0; at < text.size();) {
    std::vector<std::string>& record = records.emplace_back();
    for (bool ends = false; !ends;) {
      std::string field;
      if (text[at] == '"') {
        for (++at; at < text.size(); ++at) {
          if (text[at] != '"') {
            field += text[at];
          } else if (at + 1 < text.size() && text[at + 1] == '"') {
            field += text[at++];
          } else {
            break;
          }
        }
        ++at;
      } else {
        while (at < text.size() && text[at] != ',' && text[at] != '\r' && text[at] != '"' && text[at] != '\n')
          field += text[at++];
      }
      record.push_back(field);
      if (text.compare(at, 1, ",") == 0) {
        ++at;
      } else if (text.compare(at, 2, "\r\n") == 0) {
        at += 2;
        ends = true;
      } else {
        record.emplace_back("FAULT");
        return records;
      }
    }
  }
  return records;
}

memprof::profile training() {
  memprof::profile profile;
  profile.exact = true;
  profile.segments = {{"A, \"quoted\"", 1, 2, 0, 0}, {"B\r\nC", 2, 3, 1, 0}, {"A, \"quoted\"", 3, 4, 2, 1}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cpu";
  space.segments.resize(3);
  space.segments[0].segment_peak = 100;
  space.segments[0].segment_change = 50;
  space.segments[2].segment_peak = 201;
  space.segments[2].segment_change = -20;
  space.cumulative_current = 30;
  space.live_at_peak.by_operation = {{"x/y", 90, 2}, {"", 10, 1}};
  space.live_at_peak.remaining_bytes = 5;
  profile.operations.emplace_back().path = "x/y";
  profile.operations.back().usage.emplace_back().space = "cpu";
  profile.operations.back().usage.back().live = 12;
  profile.operations.emplace_back().path = "z,";
  profile.operations.back().usage.emplace_back().space = "cpu";
  profile.operations.back().usage.back().live = 8;
  return profile;
}

using row = std::vector<std::string>;

}  // namespace

TEST_CASE("csv: segments by name, whatever is in their names") {
  const auto records = records_of(memprof::segments_csv(training()));
  REQUIRE(records.size() == 3);
  for (const row& record : records) CHECK(record.size() == 20);
  CHECK(records[0][3] == "segment_peak_first");
  CHECK(row(records[1].begin(), records[1].begin() + 13) ==
        row{"cpu", "A, \"quoted\"", "2", "100", "201", "100", "201", "150.5", "50", "-20", "-20", "50", "15"});
  CHECK(records[2][1] == "B\r\nC");
}

TEST_CASE("csv: every segment") {
  const auto records = records_of(memprof::every_segment_csv(training()));
  REQUIRE(records.size() == 4);
  CHECK(records[3] == row{"cpu", "2", "1", "A, \"quoted\"", "3", "4", "201", "0", "0", "-20", "0", "0"});
}

TEST_CASE("csv: owners at the peak and at the end, whose sums are the totals") {
  const auto records = records_of(memprof::owners_csv(training()));
  REQUIRE(records.size() == 5);
  CHECK(records[1] == row{"cpu", "x/y", "0", "90", "2", "12"});
  CHECK(records[2] == row{"cpu", "", "0", "10", "1", "10"});  // 30 - 12 - 8
  CHECK(records[3] == row{"cpu", "z,", "0", "0", "0", "8"});
  CHECK(records[4] == row{"cpu", "", "1", "5", "", ""});
}

TEST_CASE("csv: a table of facts") {
  const memprof::fact_table table{"t", {"a", "b,"}, {{std::string{"x\"y"}, 0.1}, {std::string{}, 1e300}}};
  CHECK(memprof::fact_csv(table) == "a,\"b,\"\r\n\"x\"\"y\",0.1\r\n,1e+300\r\n");
}

TEST_CASE("csv: no name is a formula to a spreadsheet, and negative numbers stay numbers") {
  const memprof::fact_table table{
      "t", {"=a", "b"}, {{std::string{"-1+cmd|' /C calc'!A0"}, std::int64_t{-5}}, {std::string{"@x"}, -0.5}}};
  CHECK(memprof::fact_csv(table) == "'=a,b\r\n'-1+cmd|' /C calc'!A0,-5\r\n'@x,-0.5\r\n");
}

}  // namespace memprof_tests::report_csv
