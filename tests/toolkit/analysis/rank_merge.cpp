#include <memprof/toolkit/analysis/rank_merge.hpp>

#include <memprof/memprof.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/analysis/rank_merge_json.hpp>
#include <memprof/toolkit/analysis/rank_merge_text.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <buffer.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace memprof_tests::analysis_rank_merge {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::merged_ranks;
using memprof::rank_finding;
using memprof::rank_merge;

namespace {

/// Bytes allocated from `malloc`; 0 where they are unknown.
std::int64_t heap_bytes() {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GLIBC_PREREQ(2, 33)
  return static_cast<std::int64_t>(::mallinfo2().uordblks);
#endif
#endif
  return 0;
}

/// A training of `steps` steps with two layers, in which the second has `more` bytes more from step `since` on, which counts
/// from 0.
memprof::profile trained(std::int64_t rank, std::size_t more = 0, int since = 0, int steps = 6) {
  auto capture = memprof::begin_capture();
  const buffer weights = allocated_in("model", 100'000);
  for (int step = 0; step < steps; ++step) {
    {
      const buffer attention = allocated_in("h.0/attn", 20'000);
      memprof::snapshot("FORWARD_PASS");
    }
    {
      const buffer mlp = allocated_in("h.0/mlp", 30'000 + (step >= since ? more : 0));
      memprof::snapshot("BACKWARD_PASS");
    }
  }
  capture.end();
  memprof::profile profile = capture.profile();
  profile.process.rank = rank;
  profile.process.world_size = 4;
  profile.process.host = rank < 2 ? "a" : "b";
  profile.process.command_line = "train --local-rank " + std::to_string(rank);
  return profile;
}

merged_ranks merged(const std::vector<memprof::profile>& profiles, std::string_view space = {}) {
  rank_merge merge;
  for (std::size_t index = 0; index < profiles.size(); ++index)
    REQUIRE(merge.add(profiles[index], "run_" + std::to_string(index) + ".json", index));
  merged_ranks of = merge.result(space);
  for (rank_finding& finding : of.findings) {
    const memprof::profile& usual = profiles[of.median_source];
    const memprof::profile& own = profiles[finding.run.source];
    explain(finding, of, {usual, memprof::stack_table_of(usual)}, {own, memprof::stack_table_of(own)});
  }
  return of;
}

/// Ranks with these peaks, and nothing else in which they differ.
merged_ranks merged_peaks(const std::vector<std::int64_t>& peaks) {
  rank_merge merge;
  memprof::profile profile = trained(0);
  profile.process.world_size = static_cast<std::int64_t>(peaks.size());
  for (std::size_t index = 0; index < peaks.size(); ++index) {
    profile.process.rank = static_cast<std::int64_t>(index);
    profile.spaces[0].cumulative_peak = peaks[index];
    merge.add(profile, "run.json", index);
  }
  return merge.result();
}

}  // namespace

TEST_CASE("rank merge: the rank that needs more is named, with its operation and since when") {
  const merged_ranks of = merged({trained(0), trained(1), trained(2), trained(3, 400'000, 2)});
  CHECK(of.space == "cpu");
  CHECK(of.ranks == 4);
  CHECK(of.median == 130'000);
  CHECK(of.least == 130'000);
  CHECK(of.greatest == 530'000);
  CHECK(of.sum == 920'000);
  CHECK(of.mean() == 230'000);
  CHECK(of.imbalance() > 1.3043);  // 530 / 230 - 1
  CHECK(of.imbalance() < 1.3044);
  CHECK(of.deviation == 0);
  CHECK(of.threshold == 1'300);
  CHECK(of.standing_out == 1);
  REQUIRE(of.findings.size() == 1);
  const rank_finding& finding = of.findings[0];
  CHECK(finding.run.rank == 3);
  CHECK(finding.run.host == "b");
  CHECK(finding.change == 400'000);
  CHECK(finding.run.segment == "BACKWARD_PASS");
  CHECK(finding.since_step == 2);
  CHECK(finding.since_segment == "BACKWARD_PASS");
  CHECK(finding.last_alike_step == 1);
  REQUIRE(finding.difference);
  CHECK(finding.difference->change() == 400'000);
  CHECK(finding.difference->operations.front().owner == "h.0/mlp");
  CHECK(finding.difference->operations.front().change() == 400'000);

  const std::string text = to_text(of, {.columns = 200});
  CHECK_THAT(text, ContainsSubstring(
                       "Ranks     rank 3 (host b) peaks 391 KiB above the median of 127 KiB (+308 %): h.0/mlp +391 KiB, since "
                       "step 3 (BACKWARD_PASS)"));
  CHECK_THAT(text, ContainsSubstring("sum 898 KiB (920,000 B)"));
  CHECK_THAT(text, ContainsSubstring("imbalance 130.4 %"));
  CHECK_THAT(to_markdown(of),
             ContainsSubstring("**rank 3 (host b) peaks 391 KiB above the median of 127 KiB (+308 %): `h.0/mlp` +391 KiB"));
}

TEST_CASE("rank merge: a rank that needs less stands out too") {
  const merged_ranks of = merged({trained(0, 9'000), trained(1, 9'000), trained(2), trained(3, 9'000)});
  REQUIRE(of.findings.size() == 1);
  CHECK(of.findings[0].run.rank == 2);
  CHECK(of.findings[0].change == -9'000);
  CHECK(of.findings[0].since_step == 0);
  CHECK(of.findings[0].last_alike_step == -1);
  CHECK_THAT(to_text(of),
             ContainsSubstring("rank 2 (host b) peaks 8.79 KiB below the median of 136 KiB (-6.5 %): h.0/mlp -8.79"));
}

TEST_CASE("rank merge: a peak in one step alone has a step, and no step since when") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3, 50'000, 4)};
  // The others keep no segment of the last steps.
  for (std::size_t index = 0; index < 3; ++index) {
    profiles[index].segments.resize(4);
    for (memprof::space_profile& space : profiles[index].spaces) {
      space.segments.resize(4);
      space.peak_segment = 1;
    }
  }
  const merged_ranks of = merged(profiles);
  REQUIRE(of.findings.size() == 1);
  CHECK(of.findings[0].since_step == -1);
  CHECK_THAT(to_text(of, {.columns = 200}), ContainsSubstring("h.0/mlp +48.8 KiB, in BACKWARD_PASS, step 5"));
}

TEST_CASE("rank merge: segments that a profile does not keep leave a range of steps") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3, 400'000, 2)};
  memprof::profile& own = profiles[3];  // keeps steps 0 and 4 to 6
  own.segments.erase(own.segments.begin() + 2, own.segments.begin() + 8);
  own.spaces[0].segments.erase(own.spaces[0].segments.begin() + 2, own.spaces[0].segments.begin() + 8);
  own.spaces[0].peak_segment = 3;
  const merged_ranks of = merged(profiles);
  REQUIRE(of.findings.size() == 1);
  CHECK(of.findings[0].since_step == 4);
  CHECK(of.findings[0].last_alike_step == 0);
  CHECK_THAT(to_text(of, {.columns = 200}), ContainsSubstring("since step 5 (FORWARD_PASS) at the latest, but not in step 1"));
}

TEST_CASE("rank merge: who stands out among few ranks") {
  const auto standing_out = [](const std::vector<std::int64_t>& peaks) {
    const merged_ranks of = merged_peaks(peaks);
    std::vector<std::int64_t> ranks;
    for (const rank_finding& finding : of.findings) {
      if (finding.stands_out) ranks.push_back(finding.run.rank);
    }
    CHECK(of.standing_out == static_cast<std::int64_t>(ranks.size()));
    return ranks;
  };
  using ranks = std::vector<std::int64_t>;
  CHECK(standing_out({20'000}).empty());
  CHECK(standing_out({20'000, 24'000}).empty());  // of two, neither
  CHECK(standing_out({20'000, 20'000, 24'000}) == ranks{2});
  CHECK(standing_out({24'000, 20'000, 24'000}) == ranks{1});
  CHECK(standing_out({20'000, 20'000, 20'000, 24'000}) == ranks{3});
  CHECK(standing_out({24'000, 20'000, 24'000, 20'000}).empty());  // two kinds
  CHECK(standing_out({20'000, 21'000, 22'000, 23'000}).empty());  // stages of a pipeline
  CHECK(standing_out({20'000, 20'010, 20'020, 24'000}) == ranks{3});
  CHECK(standing_out({20'000, 20'000, 20'000, 20'200}).empty());  // 1 %
  CHECK(standing_out({20'000, 20'000, 20'000, 20'201}) == ranks{3});
  CHECK(standing_out({0, 0, 0, 1}) == ranks{3});
  // The distances from 20,100 are 0, 0, 100, 100 and its own: the threshold is 518.
  CHECK(standing_out({20'000, 20'100, 20'200, 20'100, 20'618}).empty());
  CHECK(standing_out({20'000, 20'100, 20'200, 20'100, 20'619}) == ranks{4});
}

TEST_CASE("rank merge: equal ranks and two ranks") {
  const merged_ranks equal = merged({trained(0), trained(1), trained(2), trained(3)});
  CHECK(equal.findings.empty());
  CHECK(equal.imbalance() == 0);
  CHECK_THAT(to_text(equal), ContainsSubstring("Ranks     no rank stands out: the peak of each is 127 KiB (130,000 B)\n"));

  const merged_ranks two = merged({trained(0), trained(1, 20'000)});
  CHECK(two.standing_out == 0);
  CHECK_THAT(to_text(two, {.columns = 200}),
             ContainsSubstring("no rank stands out; the greatest, rank 1, peaks 19.5 KiB above the median of 127 KiB "
                               "(+15.4 %): h.0/mlp +19.5 KiB, since step 1 (BACKWARD_PASS)"));
  CHECK_THAT(to_text(two), ContainsSubstring("Missing   ranks 2-3 of 4 left no recording"));
  CHECK_THAT(to_text(merged({trained(0)})), ContainsSubstring("one recording: a comparison needs those of other ranks"));
}

TEST_CASE("rank merge: missing, unfinished and inexact ranks are named") {
  rank_merge merge;
  memprof::profile first = trained(0);
  first.exact = false;
  memprof::profile second = trained(2);
  second.complete = false;
  merge.add(first, "run_rank0.json", 0);
  merge.add(second, "run_rank2.json", 1);
  merge.add_unreadable(3, "run_rank3.tmp12", "it was ended while it wrote 'run_rank3.tmp12'");
  const merged_ranks of = merge.result();
  CHECK(of.missing == std::vector<std::int64_t>{1});
  CHECK(of.unfinished_count == 2);
  const std::string text = to_text(of);
  CHECK_THAT(text, ContainsSubstring("Missing   rank 1 of 4 left no recording\n"));
  CHECK_THAT(text, ContainsSubstring("Partial   rank 2: its capture had not ended\n"));
  CHECK_THAT(text, ContainsSubstring("rank 3: it was ended while it wrote 'run_rank3.tmp12'\n"));
  CHECK_THAT(text, ContainsSubstring("Accuracy  rank 0 is not exact\n"));
}

TEST_CASE("rank merge: caveats about recordings are said once for the ranks that have them, whatever their numbers") {
  rank_merge merge;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    memprof::profile of = trained(rank);
    of.provenance.remarks = {"sizes are multiples of 512 bytes", std::to_string(100 - rank) + " rows were left out"};
    if (rank == 2) of.provenance.remarks.emplace_back("its clock stood still");
    merge.add(of, "run.json", static_cast<std::size_t>(rank));
  }
  const merged_ranks of = merge.result();
  REQUIRE(of.remarks.size() == 3);
  CHECK(of.remarks[1].ranks == 3);
  const std::string text = to_text(of);
  CHECK_THAT(text, ContainsSubstring("Accuracy  all 3 ranks: sizes are multiples of 512 bytes\n"));
  CHECK_THAT(text, ContainsSubstring("all 3 ranks, of which rank 0: 100 rows were left out\n"));
  CHECK_THAT(text, ContainsSubstring("rank 2: its clock stood still\n"));
  CHECK(to_json(of)["caveats"].size() == 4);  // rank 3 is missing, too
}

TEST_CASE("rank merge: what should be alike and is not is named; numbers in command lines may differ") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3)};
  CHECK(merged(profiles).differences.empty());
  profiles[1].process.command_line = "evaluate";
  CHECK_THAT(to_text(merged(profiles)), ContainsSubstring("program: train --local-rank * on 3 ranks, evaluate on rank 1\n"));
  profiles[1].process.command_line = "train --compile --local-rank 1";
  profiles[3].device = "h100";
  profiles[2].mode = memprof::run_mode::no_dispatch;
  const std::string text = to_text(merged(profiles));
  CHECK_THAT(text, ContainsSubstring("program: nothing more on 3 ranks, --compile on rank 1\n"));
  CHECK_THAT(text, ContainsSubstring("device: none named on 3 ranks, h100 on rank 3\n"));
  CHECK_THAT(text, ContainsSubstring("run mode: normal on 3 ranks, no_dispatch on rank 2\n"));
}

TEST_CASE("rank merge: each rank has a device of its own, and the family is asked for by any of its names") {
  std::vector<memprof::profile> profiles;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    memprof::profile profile = trained(rank, rank == 1 ? 70'000 : 0);
    memprof::space_profile host = profile.spaces[0];
    profile.spaces[0].name = "cuda:" + std::to_string(rank);
    host.cumulative_peak = 10;
    profile.spaces.push_back(host);
    profiles.push_back(profile);
  }
  const merged_ranks of = merged(profiles);
  CHECK(of.space == "cuda:*");
  REQUIRE(of.findings.size() == 1);
  CHECK(of.findings[0].run.space == "cuda:1");
  CHECK(of.findings[0].difference->change() == 70'000);
  CHECK(merged(profiles, "cuda:3").space == "cuda:*");
  CHECK(merged(profiles, "cpu").greatest == 10);
  CHECK_THROWS_MATCHES(merged(profiles, "l1"), memprof::error,
                       MessageMatches(ContainsSubstring("no rank has a memory space 'l1'; there are cpu, cuda:*") ||
                                      ContainsSubstring("no rank has a memory space 'l1'; there are cuda:*, cpu")));
}

TEST_CASE("rank merge: a second run is refused, and a profile of a moment left out") {
  rank_merge merge;
  memprof::profile profile = trained(1);
  CHECK(merge.add(profile, "first_rank1.json", 0));
  CHECK_THROWS_MATCHES(merge.add(profile, "second_rank1.json", 1), memprof::error,
                       MessageMatches(ContainsSubstring("'second_rank1.json' is a second recording of rank 1")));
  profile.complete = false;
  CHECK_FALSE(merge.add(profile, "moment_rank1.json", 2));
  CHECK(merge.profiles() == 1);
  profile.process.rank = rank_merge::most_ranks;
  CHECK_THROWS_MATCHES(merge.add(profile, "far.json", 3), memprof::error,
                       MessageMatches(ContainsSubstring("at most 16777216 ranks")));
  // Without a launcher there are no ranks, and files are told apart by their names.
  profile = trained(-1);
  CHECK(merge.add(profile, "x/one.json", 4));
  CHECK(merge.add(profile, "x/two.json", 5));
  CHECK_THAT(to_text(merge.result()), ContainsSubstring("\n'two.json'"));
}

TEST_CASE("rank merge: ranks that do not say who held the peak have a distance without a reason") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3, 400'000)};
  profiles[3].spaces[0].live_at_peak = {};
  profiles[3].operations.clear();
  const merged_ranks of = merged(profiles);
  REQUIRE(of.findings.size() == 1);
  CHECK_FALSE(of.findings[0].difference);
  CHECK_THAT(of.findings[0].unexplained, ContainsSubstring("do not add up"));
  CHECK_THAT(to_text(of, {.columns = 200}), ContainsSubstring("whose memory is unknown, since step 1"));
}

TEST_CASE("rank merge: 10,000 ranks take no more memory than 3,000, and the one that differs is found") {
  rank_merge merge;
  memprof::profile profile = trained(0);
  profile.process.world_size = 10'001;
  const auto added = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t rank = from; rank < to; ++rank) {
      if (rank == 5'000) continue;
      profile.process.rank = rank;
      profile.process.host = "host" + std::to_string(rank / 8);
      // Some noise: each of 2,003 values.
      profile.spaces[0].cumulative_peak = 20'000'000'000 + rank * 7919 % 2'003 * 10'000 + (rank == 7'777 ? 4'000'000'000 : 0);
      merge.add(profile, "memory_profile_rank" + std::to_string(rank) + ".json", static_cast<std::size_t>(rank));
    }
  };
  added(0, 3'000);
  const std::int64_t before = heap_bytes();
  added(3'000, 10'000);
  CHECK(heap_bytes() - before < 200'000);  // the rows of 7,000 ranks would take more than a million
  const merged_ranks of = merge.result();
  CHECK(of.ranks == 9'999);
  CHECK(of.least == 20'000'000'000);
  CHECK(of.missing == std::vector<std::int64_t>{5'000, 10'000});
  CHECK(of.rows.size() == rank_merge::most_rows);
  CHECK_FALSE(of.has_all_rows());
  CHECK(of.standing_out == 1);
  REQUIRE(of.findings.size() == 1);
  CHECK(of.findings[0].run.rank == 7'777);
  CHECK(of.findings[0].run.host == "host972");
  CHECK(of.rounding > 1);
  // The peaks are spread evenly over 20.02 million bytes.
  CHECK(of.median > 20'010'010'000 - 40'000);
  CHECK(of.median < 20'010'010'000 + 40'000);
  CHECK(of.sum == [&] {
    std::int64_t sum = 4'000'000'000;
    for (std::int64_t rank = 0; rank < 10'000; ++rank) sum += rank == 5'000 ? 0 : 20'000'000'000 + rank * 7919 % 2'003 * 10'000;
    return sum;
  }());
  const std::string text = to_text(of, {.columns = 80});
  CHECK_THAT(text, ContainsSubstring("rank 7777 (host host972) peaks 3.7"));
  CHECK_THAT(text, ContainsSubstring("ranks 5000, 10000 of 10,001 left no recording"));
  CHECK_THAT(text, ContainsSubstring("9,979 others between them: --all lists up to 64"));
  CHECK(to_json(of).dump().size() < 10'000);
  CHECK(to_json(of)["rows"].size() == 20);
  CHECK(to_json(of)["rows"][0]["rank"] == 7'777);
}

TEST_CASE("rank merge text: it fits 80 columns and has no control characters") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3, 400'000)};
  profiles[3].process.host = "a\x1b]0;host-with-a-very-long-name.of.some.cluster.example.org";
  profiles[2].device = "a device with a name that is longer than any table can show in one line of eighty columns";
  for (const std::size_t columns : {std::size_t{60}, std::size_t{80}, std::size_t{200}}) {
    std::istringstream lines{to_text(merged(profiles), {.columns = columns})};
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(memprof::detail::display_width(line) <= columns);
      CHECK(line.find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("rank merge JSON: its keys are those of the schema, and owners add up") {
  std::vector<memprof::profile> profiles{trained(0), trained(1), trained(2), trained(3, 400'000)};
  profiles[0].device = "h100";
  profiles[0].complete = false;
  const merged_ranks of = merged(profiles);
  const nlohmann::ordered_json document = to_json(of);
  const nlohmann::json schema = read_schema("merge.schema.json");
  const nlohmann::json& definitions = schema.at("definitions");
  check_keys(document, schema);
  check_keys(document["findings"][0], definitions.at("finding"));
  check_keys(document["findings"][0]["run"], definitions.at("run"));
  check_keys(document["findings"][0]["owners"][0], definitions.at("owner"));
  check_keys(document["rows"][0], definitions.at("run"));
  check_keys(document["segments"][0], definitions.at("segment"));
  check_keys(document["differences"][0], definitions.at("difference"));
  check_keys(document["differences"][0]["values"][0], definitions.at("alternative"));
  check_keys(document["unfinished"][0], definitions.at("unfinished"));
  CHECK(schema["properties"]["format"]["const"] == memprof::merge_json_format);
  CHECK(schema["properties"]["version"]["const"] == memprof::merge_json_version);
  const nlohmann::ordered_json& finding = document["findings"][0];
  std::int64_t sum = finding["other_change_bytes"];
  for (const nlohmann::ordered_json& owner : finding["owners"]) sum += owner["change_bytes"].get<std::int64_t>();
  CHECK(sum == finding["change_bytes"]);
  CHECK(sum == 400'000);
}

}  // namespace memprof_tests::analysis_rank_merge
