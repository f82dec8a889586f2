#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/format/tables/fact_text.hpp>
#include <memprof/trace/fact_table.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_tables_fact_text {

namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("fact text: the name of a column says what its numbers are") {
  const memprof::fact_table table = memprof::extend::to_table<memprof::pytorch_operation>(
      {{"aten::addmm", "[8], [4, 2]", 16, 85'250'000, 0, 3 * mib, 0}, {"aten::relu", "", 1, 1'000, 0, -mib, mib}});
  CHECK(memprof::to_text(table, 1, {.columns = 110}) ==
        "pytorch_operations (2 rows)\n"
        "name         input_shapes  count  cpu_time_ns  device_time_ns  cpu_memory  device_memory\n"
        "aten::addmm  [8], [4, 2]      16      85.2 ms            0 ns    3.00 MiB            0 B\n"
        "1 further row\n");
}

TEST_CASE("fact text: a table of facts too wide for the page goes on below, with its first column, and lacks nothing") {
  memprof::process_memory row;
  row.time_ns = 1'500;
  row.resident_bytes = row.peak_resident_bytes = row.anonymous_bytes = row.swapped_bytes = 100 * mib;
  row.heap_bytes = row.free_heap_bytes = row.heap_before_bytes = row.recorded_bytes = row.unrecorded_heap_bytes = 3 * mib;
  row.profiler_bytes = 7 * kib;
  row.records_operator_new = 1;
  row.container_limit_bytes = 100 * mib;
  row.moment = "most_unrecorded";
  const memprof::fact_table table = memprof::extend::to_table(std::vector<memprof::process_memory>{row});
  CHECK(memprof::to_text(table, 1, {.columns = 80}) ==
        "process_memory (1 row)\n"
        "moment           time_ns  resident_bytes  peak_resident_bytes  anonymous_bytes\n"
        "most_unrecorded  1.50 us         100 MiB              100 MiB          100 MiB\n"
        "\n"
        "moment           swapped_bytes  heap_bytes  free_heap_bytes  heap_before_bytes\n"
        "most_unrecorded        100 MiB    3.00 MiB         3.00 MiB           3.00 MiB\n"
        "\n"
        "moment           recorded_bytes  unrecorded_heap_bytes  profiler_bytes\n"
        "most_unrecorded        3.00 MiB               3.00 MiB        7.00 KiB\n"
        "\n"
        "moment           records_operator_new  records_malloc  container_limit_bytes\n"
        "most_unrecorded                     1               0                100 MiB\n");
  for (const std::size_t columns : {60U, 61U, 79U, 100U, 120U, 200U, 249U, 250U, 300U}) {
    const std::string text = memprof::to_text(table, 1, {.columns = columns});
    for (const std::string& title : table.columns) CHECK(contains(text, title));
    CHECK_FALSE(contains(text, "\u2026"));
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      CHECK(end - begin <= columns);
    }
  }
}

TEST_CASE("fact text: a table of facts from another program fits the page, however long its names and numbers are") {
  const memprof::fact_table table{
      "t",
      {"first", std::string(500, 'c'), "number", "text"},
      {{std::string(500, 'f'), std::int64_t{1}, 1e300, std::string(500, 't')}, {std::string{"short"}}}};
  const std::string text = memprof::to_text(table, 2, {.columns = 60});
  CHECK(contains(text, "number"));
  CHECK(contains(text, "text"));
  CHECK(contains(text, "ccc"));
  CHECK(contains(text, "ttt"));
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    CHECK(memprof::detail::display_width(std::string_view{text}.substr(begin, end - begin)) <= 60);
  }
}

TEST_CASE("fact text: what a title or a text holds does not change the layout") {
  const memprof::fact_table table{"t", {"a\tb", "c"}, {{std::string{"x\n\x0ey"}, std::int64_t{1}}}};
  CHECK(memprof::to_text(table, 1, {.columns = 60}) ==
        "t (1 row)\n"
        "a\\tb      c\n"
        "x\\n\\x0ey  1\n");
}

}  // namespace memprof_tests::format_tables_fact_text
