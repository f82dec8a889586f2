#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>

#include <toolkit/analysis/tracker_log.hpp>
#include <toolkit/format/tenstorrent/tracker_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace memprof_tests::format_tracker_log {

using memprof::parse_tracker_log;
using namespace memprof_tests;

namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse_tracker_log(text, "run.log");
  } catch (const memprof::error& fault) {
    return fault.what();
  }
  return "no error";
}

bool remarks(const memprof::profile& summary, const std::string& part) {
  for (const std::string& remark : summary.provenance.remarks) {
    if (remark.find(part) != std::string::npos) return true;
  }
  return false;
}

std::int64_t parameters_of(const memprof::profile& summary) {
  const auto rows = memprof::rows_of<memprof::model_parameters>(summary.facts);
  return rows.size() == 1 ? rows.front().count : 0;
}

std::vector<std::string> names_of(const memprof::profile& summary) {
  std::vector<std::string> names;
  for (const memprof::segment& segment : summary.segments) names.push_back(segment.name);
  return names;
}

}  // namespace

TEST_CASE("tracker log: every number of a summary is read, to the byte that its decimals tell") {
  const auto summaries = parse_tracker_log("Number of parameters: 969369600\ntinyllama\n" + memory_efficient_text(), "run.log");
  REQUIRE(summaries.size() == 1);
  const memprof::profile& summary = summaries.front();
  CHECK(summary.provenance.file == "run.log");
  CHECK(summary.provenance.line == 3);
  CHECK(summary.provenance.section == "tinyllama");
  CHECK(parameters_of(summary) == 969'369'600);
  CHECK(summary.spaces[0].cumulative_peak == hundredths(827865));
  CHECK(summary.spaces[0].cumulative_current == hundredths(742804));
  CHECK(summary.spaces[0].peak_segment == 3);
  CHECK(summary.provenance.remarks.empty());
  REQUIRE(summary.spaces[0].segments.size() == 4);
  const memprof::segment_usage& backward = summary.spaces[0].segments[3];
  CHECK(backward.segment == "BACKWARD_PASS");
  CHECK(backward.segment_peak == hundredths(251369));
  CHECK(backward.allocations == hundredths(2000000 + 166307));
  CHECK(backward.deallocations == hundredths(2000000));
  CHECK(backward.segment_change == hundredths(166307));
  CHECK(backward.cumulative_peak == hundredths(827865));
  CHECK(backward.cumulative_current == hundredths(742804));
}

TEST_CASE("tracker log: a summary is a profile that says what it lacks, and how it is rounded") {
  const memprof::profile summary = parse_tracker_log("[rank3] " + memory_efficient_text(), "run.log").front();
  CHECK(summary.complete);
  CHECK(summary.provenance.format == "tracker_log");
  CHECK(summary.provenance.file == "run.log");
  CHECK(summary.provenance.rounding == 10486);  // 2^20 / 100, rounded up
  CHECK(summary.provenance.lacks("live_at_peak"));
  CHECK(summary.provenance.lacks("timeline"));
  CHECK(!summary.provenance.lacks("cumulative_peak"));
  CHECK(!memprof::profile{}.provenance.lacks("timeline"));
  CHECK(summary.process.rank == 3);
  REQUIRE(summary.segments.size() == summary.spaces[0].segments.size());
  CHECK(summary.spaces.size() == 1);
  CHECK(summary.spaces[0].name == "dram");
  CHECK(summary.spaces[0].allocations == hundredths(2186325) + hundredths(2370876) + hundredths(2019295) + hundredths(2166307));
  CHECK(summary.spaces[0].deallocations == 4 * hundredths(2000000));
  const std::string text = memory_efficient_text();
  CHECK(!parse_tracker_log(text.substr(0, text.find("\n=== Final"))).front().complete);
}

TEST_CASE("tracker log: a line that shows how far a training has come names no summary") {
  const auto section = [](const std::string& before) {
    return parse_tracker_log(before + '\n' + memory_efficient_text()).front().provenance.section;
  };
  CHECK(section("tinyllama\nstep 1/1  loss unknown  0.4 ms/step") == "tinyllama");
  CHECK(section("Loss: unknown, nothing was dispatched in 1 steps of 0.4 ms").empty());
  CHECK(section("Loss: 4.6052 -> 2.5011 in 200 steps of 20.1 ms").empty());
  CHECK(section("Step: 5, Loss: 3.21, Time: 12 ms").empty());
  CHECK(section("epoch=3 accuracy 0.9").empty());
  CHECK(section("iter 100: 2.3").empty());
  CHECK(section("100%|######| 10/10 [00:01<00:00,  9.8it/s]").empty());
  CHECK(section("two-step warm-up, lossless") == "two-step warm-up, lossless");
  CHECK(section("batch of 8, stepwise") == "batch of 8, stepwise");
}

TEST_CASE("tracker log: the regular expressions of analyze_memory.py see the same") {
  const std::string text = memory_efficient_text() + default_text();
  const auto summaries = parse_tracker_log(text);
  const std::vector<std::string> expected = tracker_summaries(text);
  REQUIRE(summaries.size() == expected.size());
  const auto same = [](std::int64_t bytes, double megabytes) { return bytes == std::llround(megabytes * 1048576); };
  for (std::size_t index = 0; index < summaries.size(); ++index) {
    CHECK(same(summaries[index].spaces[0].cumulative_peak, analyzed_peak(expected[index])));
    for (const memprof::segment_usage& segment : summaries[index].spaces[0].segments) {
      const tracker_phase phase = analyzed_phase(expected[index], segment.segment);
      CHECK(same(segment.segment_peak, phase.segment_peak));
      CHECK(same(segment.allocations, phase.allocations));
      CHECK(same(segment.deallocations, phase.deallocations));
      CHECK(same(segment.segment_change, phase.segment_change));
      CHECK(same(segment.cumulative_peak, phase.cumulative_peak));
      CHECK(same(segment.cumulative_current, phase.cumulative_current));
    }
  }
}

TEST_CASE("tracker log: each of several summaries has its own number of parameters, in either spelling") {
  const auto summaries =
      parse_tracker_log("Number of parameters: 969369600\nsmall\n" + memory_efficient_text() +
                        "Total parameters: 1,134,596,096\n# step\n\nlarge\n" + default_text() + default_text());
  REQUIRE(summaries.size() == 3);
  CHECK(parameters_of(summaries[0]) == 969'369'600);
  CHECK(summaries[0].provenance.section == "small");
  CHECK(parameters_of(summaries[1]) == 1'134'596'096);
  CHECK(summaries[1].provenance.section == "large");
  CHECK(!remarks(summaries[1], "number of parameters"));
  CHECK(parameters_of(summaries[2]) == 1'134'596'096);
  CHECK(summaries[2].provenance.section.empty());
  CHECK(remarks(summaries[2], "number of parameters is the one logged before an earlier summary"));
}

TEST_CASE("tracker log: the number of parameters may stand any distance before the summary") {
  std::string text = "Total parameters: 5,000\n";
  for (int line = 0; line < 1000; ++line) text += "step " + std::to_string(line) + ": loss 3.14\n";
  CHECK(parameters_of(parse_tracker_log(text + memory_efficient_text()).front()) == 5000);
}

TEST_CASE("tracker log: line ends, colours, time stamps and labels change no number") {
  const memprof::profile plain = parse_tracker_log(memory_efficient_text()).front();
  const auto check = [&](const std::string& text, std::int64_t rank = -1) {
    const auto summaries = parse_tracker_log(text);
    REQUIRE(summaries.size() == 1);
    CHECK(summaries.front().spaces[0].segments == plain.spaces[0].segments);
    CHECK(summaries.front().spaces[0].cumulative_peak == plain.spaces[0].cumulative_peak);
    CHECK(summaries.front().provenance.remarks.empty());
    CHECK(summaries.front().process.rank == rank);
  };
  check(with_lines(memory_efficient_text(), "", "\r\n"));
  check("\xEF\xBB\xBF" + memory_efficient_text());
  check(with_lines(memory_efficient_text(), "\x1b[32m", "\x1b[0m\n"));
  check(with_lines(memory_efficient_text(), "2026-01-31 12:00:00.123 | INFO | ", "\n"));
  check(with_lines(memory_efficient_text(), "12:30:05 - INFO - ", "\n"));
  check(with_lines(memory_efficient_text(), "[1,3]<stdout>:", "\n"), 3);
  check(with_lines(memory_efficient_text(), "\x1b[1m[rank7]\x1b[0m 12:30:05 ", "\n"), 7);
  check(with_lines(memory_efficient_text(), " 2: ", "\n"), 2);
  check("\rstep 1\rstep 2\r" + with_lines(memory_efficient_text(), "", "\r\n"));

  // grep -n: line numbers are no ranks
  std::string numbered;
  std::size_t number = 17;
  for (const char character : "\n" + memory_efficient_text()) {
    numbered += character;
    if (character == '\n') numbered += std::to_string(number++) + ":";
  }
  check(numbered);
}

TEST_CASE("tracker log: lines of several ranks may interleave") {
  const std::string first = with_lines(memory_efficient_text(), "[rank0]: ", "\n");
  const std::string second = with_lines(default_text(), "[rank1]: ", "\n");
  std::string text = "[rank0]: Number of parameters: 77\n";
  for (std::size_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::string mixed = text;
    std::size_t left = 0;
    std::size_t right = 0;
    const auto take = [&](const std::string& from, std::size_t& position) {
      const std::size_t end = from.find('\n', position) + 1;
      mixed += from.substr(position, end - position);
      position = end;
    };
    while (left < first.size() || right < second.size()) {
      const bool from_left = right == second.size() || (left < first.size() && random() % 2 == 0);
      from_left ? take(first, left) : take(second, right);
    }
    auto summaries = parse_tracker_log(mixed);
    REQUIRE(summaries.size() == 2);
    if (summaries[0].process.rank == 1) std::swap(summaries[0], summaries[1]);
    CHECK(summaries[0].process.rank == 0);
    CHECK(summaries[0].spaces[0].cumulative_peak == hundredths(827865));
    CHECK(summaries[0].provenance.remarks.empty());
    CHECK(summaries[1].process.rank == 1);
    CHECK(summaries[1].spaces[0].cumulative_peak == hundredths(1566665));
    CHECK(summaries[1].provenance.remarks.empty());
    CHECK(parameters_of(summaries[1]) == 77);  // only one rank tells it
  }
}

TEST_CASE("tracker log: a label on the first line of a message only does not tear the summary apart") {
  const auto summaries = parse_tracker_log("[rank2] " + memory_efficient_text());
  REQUIRE(summaries.size() == 1);
  CHECK(summaries.front().spaces[0].segments.size() == 4);
  CHECK(summaries.front().process.rank == 2);
}

TEST_CASE("tracker log: segments have any names, in order, as often as they come") {
  const auto summaries =
      parse_tracker_log(header_text + segment_text("ENTRY", "0.00", "+0.00", "0.00", "0.00") +
                        segment_text("block 3 / attn__000012", "1.00", "+1.00", "1.00", "1.00") +
                        segment_text("FORWARD_PASS", "1.00", "+1.00", "2.00", "2.00") +
                        segment_text("FORWARD_PASS", "0.00", "-3.00", "2.00", "-1.00") + totals_text("2.00", "-1.00"));
  REQUIRE(summaries.size() == 1);
  CHECK(names_of(summaries.front()) ==
        std::vector<std::string>{"ENTRY", "block 3 / attn__000012", "FORWARD_PASS", "FORWARD_PASS"});
  CHECK(summaries.front().spaces[0].segments.back().segment_change == -3 * (1 << 20));
  CHECK(summaries.front().spaces[0].cumulative_current == -(1 << 20));
  CHECK(summaries.front().spaces[0].peak_segment == 2);
}

TEST_CASE("tracker log: other output between the lines does no harm") {
  std::string text = memory_efficient_text();
  for (std::size_t at = 0; (at = text.find("  DRAM:", at)) != std::string::npos; at += 30)
    text.insert(at, "compiling kernel 3\n\n");
  const auto summaries = parse_tracker_log(text);
  CHECK(summaries.front().spaces[0].segments == parse_tracker_log(memory_efficient_text()).front().spaces[0].segments);
}

TEST_CASE("tracker log: missing totals are computed from the segments") {
  const std::string text = memory_efficient_text();
  const auto summaries = parse_tracker_log(text.substr(0, text.find("\n=== Final")) + default_text());
  REQUIRE(summaries.size() == 2);
  CHECK(summaries[0].spaces[0].cumulative_peak == hundredths(827865));
  CHECK(summaries[0].spaces[0].cumulative_current == hundredths(742804));
  CHECK(remarks(summaries[0], "the final totals are missing: overall peak and final usage are computed"));
  CHECK(summaries[1].spaces[0].cumulative_peak == hundredths(1566665));
  CHECK(summaries[1].provenance.section.empty());  // no line of the first summary names the second
  CHECK(summaries[1].provenance.remarks.empty());
}

TEST_CASE("tracker log: a log that breaks off within a segment is read as far as it goes") {
  const std::string text = memory_efficient_text();
  const auto cut_before = [&](const std::string& part) { return parse_tracker_log(text.substr(0, text.rfind(part))).front(); };

  const memprof::profile without_cumulative = cut_before("  DRAM: Cumulative");
  REQUIRE(without_cumulative.spaces[0].segments.size() == 4);
  // max(6568.36, 5764.96 + 2513.69) and 5764.96 + 1663.07
  CHECK(std::llabs(without_cumulative.spaces[0].cumulative_peak - hundredths(827865)) <= 1);
  CHECK(std::llabs(without_cumulative.spaces[0].cumulative_current - hundredths(742803)) <= 1);
  CHECK(remarks(without_cumulative, "segment BACKWARD_PASS in line 15 lacks its cumulative values"));

  const memprof::profile without_change = cut_before(", Segment Change");
  CHECK(without_change.spaces[0].segments.size() == 3);
  CHECK(remarks(without_change,
                "line 15, \"--- BACKWARD_PASS ---\", is left out: line 16 has no number of MB after \"Segment Change\""));

  const memprof::profile only_name = cut_before("  DRAM: Segment Peak");
  CHECK(only_name.spaces[0].segments.size() == 3);
  CHECK(remarks(only_name, "line 15, \"--- BACKWARD_PASS ---\", is left out: no line \"DRAM: Segment Peak"));

  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string cut = text.substr(0, length);
    const bool has_segment = cut.find("Segment Change +1863.25 MB") != std::string::npos;
    INFO("the first " << length << " bytes");
    CHECK((error_of(cut) == "no error") == has_segment);
  }
}

TEST_CASE("tracker log: a summary without its header is read, and said to lack its begin") {
  const auto summaries = parse_tracker_log(memory_efficient_text().substr(header_text.size()));
  REQUIRE(summaries.size() == 1);
  CHECK(summaries.front().spaces[0].segments.size() == 4);
  CHECK(summaries.front().provenance.line == 1);
  CHECK(remarks(summaries.front(), "\"=== Memory Usage Summary ===\" is missing"));
}

TEST_CASE("tracker log: segments that do not continue each other are reported") {
  const auto summaries = parse_tracker_log(header_text + segment_text("A", "10.00", "+10.00", "10.00", "10.00") +
                                           segment_text("C", "5.00", "+5.00", "25.00", "25.00") + totals_text("25.00", "25.00"));
  CHECK(remarks(summaries.front(), "cumulative values of segment C (2 of 2) do not continue"));
}

TEST_CASE("tracker log: rounding alone is no contradiction") {
  // The document's own numbers: 5764.96 + 1663.07 = 7428.03, not 7428.04.
  CHECK(parse_tracker_log(memory_efficient_text()).front().provenance.remarks.empty());
}

TEST_CASE("tracker log: totals that contradict the segments are reported") {
  const std::string segments = header_text + segment_text("A", "10.00", "+10.00", "10.00", "10.00");
  CHECK(remarks(parse_tracker_log(segments + totals_text("12.00", "10.00")).front(), "above the peaks of all segments"));
  CHECK(remarks(parse_tracker_log(segments + totals_text("9.00", "10.00")).front(), "below the peak of a segment"));
  const memprof::profile only_totals = parse_tracker_log(header_text + totals_text("9.00", "8.00")).front();
  CHECK(only_totals.spaces[0].cumulative_peak == 9 << 20);
  CHECK(remarks(only_totals, "totals but no segments"));
}

TEST_CASE("tracker log: numbers that no run has are reported") {
  const auto first_remark = [](const std::string& segments, const std::string& totals) {
    const memprof::profile summary = parse_tracker_log(header_text + segments + totals).front();
    return summary.provenance.remarks.empty() ? std::string{} : summary.provenance.remarks.front();
  };
  const std::string start = "segment A (1 of 1) ";
  const std::string end = ": the numbers are inconsistent";
  const std::string totals = totals_text("10.00", "10.00");
  CHECK(first_remark(segment_text("A", "10.00", "10.00", "0.00", "+10.00", "10.00", "10.00"), totals).empty());
  CHECK(first_remark(segment_text("A", "-1.00", "0.00", "10.00", "-10.00", "10.00", "10.00"), totals) ==
        start + "has a negative peak" + end);
  CHECK(first_remark(segment_text("A", "10.00", "5.00", "-5.00", "+10.00", "10.00", "10.00"), totals) ==
        start + "has negative allocations or deallocations" + end);
  CHECK(first_remark(segment_text("A", "10.00", "30.00", "10.00", "+10.00", "10.00", "10.00"), totals) ==
        start + "has a change other than its allocations minus its deallocations" + end);
  CHECK(first_remark(segment_text("A", "9.00", "10.00", "0.00", "+10.00", "10.00", "10.00"), totals) ==
        start + "has a peak below its change" + end);
  CHECK(first_remark(segment_text("A", "50.00", "60.00", "50.00", "+10.00", "10.00", "10.00"), totals) ==
        start + "has a peak above its cumulative peak" + end);
  // A segment that begins with less than nothing, as blocks from before the capture were freed, has a peak above the overall one.
  CHECK(first_remark(segment_text("A", "0.00", "0.00", "40.00", "-40.00", "0.00", "-40.00") +
                         segment_text("B", "50.00", "60.00", "10.00", "+50.00", "10.00", "10.00"),
                     totals)
            .empty());
  CHECK(first_remark("", totals_text("-10.00", "0.00")) == "the summary has totals but no segments");
  const memprof::profile negative = parse_tracker_log(header_text + totals_text("-10.00", "0.00")).front();
  CHECK(remarks(negative, "the overall peak is negative"));
}

TEST_CASE("tracker log: the tracker's warning that it lost a segment is passed on") {
  const auto summaries =
      parse_tracker_log("WARNING: Trace 'FORWARD_PASS' already exists, overwriting\n" + memory_efficient_text());
  CHECK(remarks(summaries.front(), "line 1 warns: WARNING: Trace 'FORWARD_PASS' already exists"));
}

TEST_CASE("tracker log: nothing to read is an error that names the first line that looked like it, and what is missing") {
  CHECK(error_of("") == "cannot read a memory summary from 'run.log': it is empty");
  CHECK(error_of("step 1\nstep 2\n") ==
        "cannot read a memory summary from 'run.log': no line looks like part of one: neither \"=== Memory Usage Summary "
        "===\" nor \"--- NAME ---\" found");
  CHECK(error_of("a\nb\n=== Memory Usage Summary ===\nWARNING: No traces captured\n") ==
        "cannot read a memory summary from 'run.log': line 3, \"=== Memory Usage Summary ===\", looks like part of one, but no "
        "segment "
        "(\"--- NAME ---\" and \"DRAM: Segment Peak ... MB, ...\") follows it");
  CHECK(error_of("a\n--- NAME ---\n  DRAM: Segment Peak X MB, Allocations Y MB\n") ==
        "cannot read a memory summary from 'run.log': line 2, \"--- NAME ---\", looks like part of one, but line 3 has no number "
        "of MB "
        "after \"Segment Peak\"");
  CHECK(error_of("Overall DRAM Peak: 8278.65 MB  # fits\n--- A ---\n") ==
        "cannot read a memory summary from 'run.log': line 1, \"Overall DRAM Peak: 8278.65 MB  # fits\", looks like part of one, "
        "but "
        "has no summary before it");
}

TEST_CASE("tracker log: what the tracker's document shows of its output is no summary") {
  // Lines of the document: one field a line, without "DRAM:".
  const std::string excerpt =
      "--- MODEL_CREATION ---\n  Segment Change: +1863.25 MB  # Model weights (bf16)\n  Cumulative Current: 1863.25 MB\n\n"
      "Overall DRAM Peak: 8278.65 MB\n";
  CHECK(error_of(excerpt).find("line 1, \"--- MODEL_CREATION ---\", looks like part of one, but no line") != std::string::npos);
}

TEST_CASE("tracker log: numbers beyond all memory are refused or held at the ends, not wrapped") {
  CHECK(error_of(segment_text("A", "99999999999999999999999", "+1.00", "1.00", "1.00")).find("no number of MB") !=
        std::string::npos);
  std::string text = header_text;
  for (int count = 0; count < 40; ++count) {
    text +=
        "--- A ---\nDRAM: Segment Peak 1000000000000 MB, Allocations 0 MB, Deallocations 0 MB, Segment Change 1000000000000 MB\n";
  }
  CHECK(parse_tracker_log(text).front().spaces[0].cumulative_peak == INT64_MAX);
}

TEST_CASE("tracker log: damaged logs are read or refused, never worse") {
  const std::string whole =
      "Total parameters: 1,000\n" + with_lines(default_text(), "\x1b[1m[rank0] ", "\r\n") + memory_efficient_text();
  std::mt19937 random(4);  // NOLINT(cert-msc51-cpp): the same damage in each run
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (unsigned change = random() % 8; change-- > 0;) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 60); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 60)); break;
      }
      if (text.empty()) break;
    }
    CHECK(error_of(text).size() > 0);
  }
}

TEST_CASE("tracker log: the text of a profile is read back to the profile's numbers") {
  memprof::profile profile;
  profile.segments = {{"MODEL_CREATION", 0, 0}, {"FORWARD_PASS", 0, 0}};
  constexpr std::int64_t mib = 1 << 20;
  memprof::space_profile& other = profile.spaces.emplace_back();
  other.name = "cpu";
  other.segments.resize(2);
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "dram";
  space.segments = {{"MODEL_CREATION", 3 * mib, 4 * mib, mib, 3 * mib, 3 * mib, 3 * mib, 2, 1, 0, "", {}},
                    {"FORWARD_PASS", 5 * mib, 9 * mib, 10 * mib, -mib, 8 * mib, 2 * mib, 2, 1, 0, "", {}}};
  space.cumulative_peak = 8 * mib;
  space.cumulative_current = 2 * mib;
  const auto summaries = parse_tracker_log(memprof::to_text(profile, {.format = memprof::text_format::tracker}));
  REQUIRE(summaries.size() == 1);
  CHECK(summaries.front().provenance.remarks.empty());
  CHECK(summaries.front().spaces[0].cumulative_peak == 8 * mib);
  REQUIRE(summaries.front().spaces[0].segments.size() == 2);
  CHECK(summaries.front().spaces[0].segments[1].segment_change == -mib);
  CHECK(summaries.front().spaces[0].segments[1].cumulative_peak == 8 * mib);
}

TEST_CASE("tracker log: lines of other memory spaces are passed over, and said to be there") {
  memprof::profile profile;
  profile.segments = {{"MODEL_CREATION", 0, 0}, {"FORWARD_PASS", 0, 0}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "dram";
  space.segments.resize(2);
  std::string text = memprof::to_text(profile, {.format = memprof::text_format::tracker});
  // As memprof 0.1 printed several spaces.
  const std::string numbers = ": Segment Peak 1.00 MB, Allocations 1.00 MB, Deallocations 0.00 MB, Segment Change +1.00 MB\n";
  text.insert(text.find("--- FORWARD_PASS"), "  cpu" + numbers + "  cuda:0" + numbers);
  for (const std::string& log : {text, with_lines(text, "[rank1]: ", "\n")}) {
    const auto summaries = parse_tracker_log(log);
    REQUIRE(summaries.size() == 1);
    const std::string rest = ", which are skipped: a profile or trace of the run has them too";
    CHECK(summaries.front().provenance.remarks ==
          std::vector<std::string>{"the log has lines of another memory space, cpu" + rest,
                                   "the log has lines of another memory space, cuda:0" + rest});
  }
}

TEST_CASE("tracker log: a log of a real run without its end is read as far as it goes") {
  const std::filesystem::path path = std::filesystem::path{MEMPROF_SOURCE_DIR} / "../shared/data/tt_train/pr50909_partial.log";
  if (!std::filesystem::exists(path)) SKIP("there is no " << path.string());
  std::ifstream file{path};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto summaries = parse_tracker_log(text);
  REQUIRE(summaries.size() == 1);
  CHECK(names_of(summaries.front()) == std::vector<std::string>{"ENTRY", "MODEL_CREATION", "OPTIMIZER_CREATION",
                                                                "FORWARD_PASS_micro_0", "BACKWARD_PASS_micro_0"});
  CHECK(summaries.front().spaces[0].cumulative_peak == hundredths(1445388));
  CHECK(summaries.front().spaces[0].cumulative_current == hundredths(841672));
  CHECK(summaries.front().spaces[0].peak_segment == 4);
  REQUIRE(summaries.front().provenance.remarks.size() == 1);
  CHECK(remarks(summaries.front(), "final totals are missing"));
}

}  // namespace memprof_tests::format_tracker_log
