#include <memprof/trace/fact_tables.hpp>

#include <memprof/detail/vector.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/folded_head.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/newest_facts.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "trace_records.hpp"

namespace memprof_tests::trace_fact_tables {

using memprof::fact_table;
using memprof_tests::trace_records;

namespace {

constexpr std::size_t part_bytes = std::size_t{64} * 1024;
constexpr std::size_t chunk_bytes = std::size_t{256} * 1024;

/// Each row is encoded in `row_bytes` bytes, if that is more than 8.
[[nodiscard]] fact_table table_of(std::size_t rows, std::size_t row_bytes) {
  fact_table table{"t", {"row", "text"}, {}};
  for (std::size_t row = 0; row < rows; ++row)
    table.rows.push_back({static_cast<std::int64_t>(row), std::string(row_bytes - 8, static_cast<char>('a' + row % 26))});
  return table;
}

/// Numbers of rows around those that fill one part, two parts, one chunk.
[[nodiscard]] std::set<std::size_t> counts_around_limits(std::size_t row_bytes) {
  std::set<std::size_t> counts{0, 1, 2};
  for (const std::size_t limit : {part_bytes, 2 * part_bytes, chunk_bytes, chunk_bytes + part_bytes}) {
    for (std::size_t rows = limit / row_bytes - 2; rows <= limit / row_bytes + 2; ++rows) counts.insert(rows);
  }
  return counts;
}

[[nodiscard]] memprof::extend::fact_part part_of(const fact_table& whole, std::size_t first, std::size_t last) {
  const auto at = [&](std::size_t row) { return whole.rows.begin() + static_cast<std::ptrdiff_t>(row); };
  return {{whole.name, whole.columns, {at(first), at(last)}}, first};
}

}  // namespace

TEST_CASE("facts: as many rows come out as went in, by every way through a trace") {
  for (const std::size_t row_bytes : {std::size_t{40}, std::size_t{700}, memprof::detail::max_fact_text}) {
    for (const std::size_t rows : counts_around_limits(row_bytes)) {
      INFO(rows << " rows of " << row_bytes << " bytes");
      const fact_table table = table_of(rows, row_bytes);
      const memprof::vector<fact_table> expected{table};

      memprof::trace plain;
      plain.facts(table);
      trace_records found;
      plain.visit(found);
      REQUIRE(found.tables.all() == expected);

      memprof::trace copy;
      copy.append(plain);
      trace_records copied;
      copy.visit(copied);
      REQUIRE(copied.tables.all() == expected);

      memprof::detail::newest_facts kept;
      for (int round = 0; round < 4; ++round) kept.put(table);
      REQUIRE(kept.tables() == expected);

      memprof::trace limited;
      REQUIRE(memprof::detail::limit_trace(limited, memprof::detail::least_trace_limit));
      memprof::extend::trace_writer writer{limited};
      const memprof::extend::space_id cpu = writer.space("cpu");
      writer.add_facts(table);
      for (std::uint64_t block = 1; block <= 20'000; ++block) writer.allocate(cpu, block << 12, block);
      writer.finish();
      REQUIRE(limited.dropped() > 0);
      const memprof::profile profile = memprof::profile_of(limited);
      REQUIRE(profile.facts == expected);
      CHECK(profile.anomalies.missing_fact_rows == 0);
      CHECK(profile.exact);
    }
  }
}

TEST_CASE("facts: rows of a part that is missing are counted, and the profile is not exact") {
  const fact_table whole = table_of(30, 40);
  memprof::detail::fact_tables tables;
  tables.add(part_of(whole, 0, 10));
  tables.add(part_of(whole, 12, 30));
  CHECK(tables.all().front().rows.size() == 28);
  CHECK(tables.missing_rows() == 2);
  tables.add(part_of(whole, 0, 30));  // a newer table
  CHECK(tables.all() == memprof::vector<fact_table>{whole});
  CHECK(tables.missing_rows() == 0);
  tables.add(part_of(whole, 20, 30));  // the end of another newer one
  CHECK(tables.all().front().rows.size() == 10);
  CHECK(tables.missing_rows() == 20);

  memprof::extend::trace_fold fold;
  fold.facts(part_of(whole, 5, 30));
  const memprof::profile profile = memprof::detail::build_profile_of(fold);
  CHECK(profile.anomalies.missing_fact_rows == 5);
  CHECK_FALSE(profile.exact);
}

TEST_CASE("facts: a profile whose numbers rest on what its source assumed is not exact") {
  const auto profile_with = [](std::int64_t assumed) {
    memprof::source_limit limit;
    limit.assumed = assumed;
    memprof::extend::trace_fold fold;
    fold.facts({memprof::extend::to_table(memprof::vector<memprof::source_limit>{limit}), 0});
    return memprof::detail::build_profile_of(fold);
  };
  CHECK_FALSE(profile_with(1).exact);
  CHECK(profile_with(1).provenance.assumed);
  CHECK(profile_with(0).exact);
  CHECK_FALSE(profile_with(0).provenance.assumed);
}

TEST_CASE("facts: rows and tables beyond the limits are counted") {
  memprof::detail::fact_tables few{{1, 10'000}};
  const fact_table table = table_of(100, 700);
  few.add(part_of(table, 0, 50));
  few.add(part_of(table, 50, 100));
  const std::size_t kept = few.all().front().rows.size();
  CHECK(kept > 5);
  CHECK(kept < 15);
  CHECK(few.missing_rows() == 100 - kept);
  few.add({{"another", {"a"}, {{1}, {2}}}});
  CHECK(few.all().size() == 1);
  CHECK(few.missing_rows() == 102 - kept);
}

}  // namespace memprof_tests::trace_fact_tables
