#include <memprof/toolkit/analysis/breakdown_text.hpp>

#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <toolkit/analysis/analyzed.hpp>
#include <toolkit/format/tenstorrent/tracker_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace memprof_tests::report_breakdown_text {

using namespace memprof_tests;

namespace {

/// Without an option about the device, that of the script.
std::string report(const std::string& log, memprof::breakdown_options options = {}) {
  if (!options.device_memory) options.device_memory = std::int64_t{12} << 30;
  return memprof::to_text(analyzed_log(log, options), options);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string rule(80, '=');

}  // namespace

// The expected lines are the formats of tt-train's analyze_memory.py with numbers worked out by hand:
// 969369600 * 2 / 2^20 = 1848.93, (1863.25 - 1848.93) / 1848.93 = +0.77 %, 7428.04 - 5572.01 = 1856.03, 8278.65 / 12288 = 67.37
// %.
TEST_CASE("breakdown text: the tables are the script's, then come parts, segments and notes") {
  CHECK(report("Number of parameters: 969369600\ntinyllama (memory_efficient)\n" + memory_efficient_text()) ==
        "Found 1 memory usage summary/summaries\n"
        "Model size not provided, calculated from logs: 1848.93 MB (969,369,600 parameters, assuming bf16)\n"
        "\n" +
            rule + "\nSection: tinyllama (memory_efficient)\n" + rule +
            "\n"
            "Number of parameters: 969,369,600\n"
            "Read from: run.log, line 3\n"
            "\n--- Model Size ---\n"
            "  Actual (from logs):   1,863.25 MB\n"
            "  Expected (input):     1,848.93 MB\n"
            "  Difference:           +0.77%\n"
            "\n--- Optimizer State ---\n"
            "  Actual (from logs):   3,708.76 MB\n"
            "  Expected (input):     3,697.85 MB\n"
            "  Difference:           +0.29%\n"
            "\n--- Activations Size ---\n"
            "  Activations:          192.95 MB\n"
            "\n--- Gradients Size ---\n"
            "  Actual (from logs):   1,856.03 MB\n"
            "  Expected (input):     1,848.93 MB\n"
            "  Difference:           +0.38%\n"
            "\n--- Peak DRAM Usage ---\n"
            "  Peak DRAM:            8,278.65 MB\n"
            "  Device Memory:        12,288.00 MB\n"
            "  Usage:                67.37%\n"
            "  Fits:                 yes, 4,009.35 MB to spare\n"
            "  Peak Segment:         BACKWARD_PASS (4 of 4)\n"
            "\n--- Peak Breakdown (by phases) ---\n"
            "  Activations:               192.95 MB    2.3 %\n"
            "  Optimizer State:         3,697.85 MB   44.7 %\n"
            "  Gradients Overhead:      2,513.69 MB   30.4 %\n"
            "  Model Parameters:        1,848.93 MB   22.3 %\n"
            "  Other:                      25.23 MB    0.3 %\n"
            "\n--- Segments ---\n"
            "    Segment Peak  Segment Change     Cumul. Peak  Cumul. Current  Segment\n"
            "     1,863.25 MB    +1,863.25 MB     1,863.25 MB     1,863.25 MB  MODEL_CREATION\n"
            "     3,708.76 MB    +3,708.76 MB     5,572.01 MB     5,572.01 MB  OPTIMIZER_CREATION\n"
            "       996.35 MB      +192.95 MB     6,568.36 MB     5,764.96 MB  FORWARD_PASS\n"
            "     2,513.69 MB    +1,663.07 MB     8,278.65 MB     7,428.04 MB  BACKWARD_PASS  <- overall peak\n"
            "\n" +
            rule + "\nAnalysis complete\n" + rule + "\n\n");
}

TEST_CASE("breakdown text: a peak above the device's memory does not fit") {
  const std::string text = report("Number of parameters: 969369600\n" + default_text());
  CHECK(contains(text, "  Peak DRAM:            15,666.65 MB\n"));
  CHECK(contains(text, "  Usage:                127.50%\n"));  // 15666.65 / 12288
  CHECK(contains(text, "  Fits:                 no, 3,378.65 MB too much\n"));
  CHECK(contains(text, "  Activations:          9,636.02 MB\n"));
}

TEST_CASE("breakdown text: a device memory from a profile says so") {
  memprof::profile profile;
  profile.exact = true;
  profile.device = "gpu-24gb";
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cuda:0";
  space.capacity = std::int64_t{24'207} << 20;
  space.cumulative_peak = std::int64_t{25'000} << 20;
  const std::string text = to_text(analyzed(profile), "run");
  CHECK(contains(text, "  Device Memory:        24,207.00 MiB (from the profile: cuda:0 of gpu-24gb)\n"));
  CHECK(contains(text, "  Fits:                 no, 793.00 MiB too much\n"));
  const std::string given = to_text(analyzed(profile, 0, {.device_memory = 1 << 20}), "run");
  CHECK(contains(given, "  Device Memory:        1.00 MiB\n"));
}

TEST_CASE("breakdown text: without a device nothing fits or does not, and the options that name one are there") {
  memprof::profile profile;
  profile.spaces.emplace_back();
  const std::string text = to_text(analyzed(profile), "run");
  CHECK(!contains(text, "Fits:"));
  CHECK(!contains(text, "Usage:"));
  CHECK(contains(text, "  Device Memory:        no device named: pass --device NAME or --device-memory SIZE to check whether"));
}

TEST_CASE("breakdown text: a log of the tracker without a device has the original's, marked as the default") {
  const std::string text = memprof::to_text(analyzed_log(memory_efficient_text()), {});
  CHECK(contains(text,
                 "  Device Memory:        12,288.00 MB (the default for a log of tt-train's tracker; --device or --device-memory "
                 "names another)\n"));
  CHECK(contains(text, "  Fits:                 yes, 4,009.35 MB to spare\n"));
}

TEST_CASE("breakdown text: a size says whether it is that of a category or of phases") {
  memprof::profile profile;
  profile.exact = true;
  memprof::space_profile& space = profile.spaces.emplace_back();
  profile.segments = {{"OPTIMIZER_CREATION", 0, 0}};
  space.segments.resize(1);
  space.segments[0].segment = "OPTIMIZER_CREATION";
  space.segments[0].segment_change = 1 << 20;
  space.live_at_peak.by_category = {{"parameter", 2 << 20, 1}};
  const std::string text = to_text(analyzed(profile), "run");
  CHECK(contains(text, "--- Model Size ---\n  Actual (category):    2.00 MiB\n"));
  CHECK(contains(text, "--- Optimizer State ---\n  Actual (phases):      1.00 MiB\n"));
}

TEST_CASE("breakdown text: the memory spaces that it is not about are named, with their peaks") {
  memprof::profile profile;
  profile.exact = true;
  profile.spaces.resize(3);
  profile.spaces[0].name = "cpu";
  profile.spaces[0].cumulative_peak = 3 << 20;
  profile.spaces[0].cumulative_current = 1 << 20;
  profile.spaces[1].name = "dram";
  profile.spaces[2].name = "l1";
  profile.spaces[2].capacity = 1 << 20;
  profile.spaces[2].cores.ranges.resize(1);
  profile.spaces[2].cores.peaks.total = 1 << 19;
  CHECK(contains(to_text(analyzed(profile, 1), "run"),
                 "\n--- Other Memory Spaces ---\n"
                 "  cpu:                  peak 3.00 MiB, 1.00 MiB at the end\n"
                 "  l1:                   peak of a core 0.50 MiB, of 1.00 MiB\n"
                 "  --space NAME shows one of them, --space all shows each.\n"));
  profile.spaces.resize(1);
  CHECK(!contains(to_text(analyzed(profile), "run"), "Other Memory Spaces"));
}

TEST_CASE("breakdown text: titles tell summaries apart by section, then file, line, rank and space") {
  using memprof::titles_of;
  using titles = std::vector<std::string>;
  const auto joined = [](std::vector<memprof::analyzed_space> left, const std::vector<memprof::analyzed_space>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
  };
  const std::string text = memory_efficient_text();
  CHECK(titles_of(joined(analyzed_log("small\n" + text, {}, "a.log"), analyzed_log("large\n" + text, {}, "b.log"))) ==
        titles{"small", "large"});
  CHECK(titles_of(joined(analyzed_log("llama\n" + text, {}, "x/a.log"), analyzed_log("llama\n" + text, {}, "x/b.log"))) ==
        titles{"llama, a.log", "llama, b.log"});
  // What nano_gpt prints before its summary.
  const std::string loss = "Loss: unknown, nothing was dispatched in 1 steps of 0.4 ms\n";
  CHECK(titles_of(joined(analyzed_log(loss + text, {}, "efficient.log"), analyzed_log(loss + text, {}, "default.log"))) ==
        titles{"efficient.log", "default.log"});
  CHECK(titles_of(joined(analyzed_log(text, {}, "1/run.log"), analyzed_log(text, {}, "2/run.log"))) ==
        titles{"1/run.log", "2/run.log"});
  CHECK(titles_of(analyzed_log(text + text)) == titles{"run.log, line 1", "run.log, line 23"});
  CHECK(titles_of(analyzed_log("[rank0] a\n" + with_lines(text, "[rank0] ", "\n") + with_lines(text, "[rank1] ", "\n")))[1] ==
        "run.log (rank 1)");
  memprof::profile profile;
  profile.exact = true;
  profile.spaces.resize(2);
  profile.spaces[0].name = "cpu";
  profile.spaces[1].name = "cuda:0";
  profile.provenance.file = "x/run.json";
  CHECK(titles_of({analyzed(profile, 0), analyzed(profile, 1)}) == titles{"run.json, cpu", "run.json, cuda:0"});
}

TEST_CASE("breakdown text: titles take time in proportion to the summaries") {
  const auto seconds_for = [](std::size_t count) {
    std::vector<memprof::analyzed_space> many(count, analyzed_log(memory_efficient_text()).front());
    const std::clock_t begin = std::clock();
    CHECK(memprof::titles_of(many).size() == count);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  CHECK(seconds_for(20'000) < 5);  // of the processor; 60 with a pass over all for each
}

TEST_CASE("breakdown text: whether a negative peak fits is unknown") {
  const std::string text = report(header_text + totals_text("-10.00", "0.00"));
  CHECK(contains(text, "  Fits:                 unknown, the peak is negative\n"));
  CHECK(!contains(text, "Usage:"));
  CHECK(contains(text, "  the overall peak is negative.\n"));
}

TEST_CASE("breakdown text: without a model size nothing is compared, and the option is named") {
  const std::string text = report(memory_efficient_text());
  CHECK(contains(text, "No expected model size to compare with: pass --model-size\n"));
  CHECK(contains(text, "  Expected (input):     unknown\n"));
  CHECK(!contains(text, "Difference:"));
  CHECK(contains(text, "Section: run.log\n"));
}

TEST_CASE("breakdown text: each number of parameters gets its line") {
  const std::string text =
      report("Number of parameters: 1048576\n" + memory_efficient_text() + "Total parameters: 2,097,152\n" + default_text());
  CHECK(contains(text, "Found 2 memory usage summary/summaries\n"));
  CHECK(contains(text, "calculated from logs: 2.00 MB (1,048,576 parameters, assuming bf16)\n"));
  CHECK(contains(text, "calculated from logs: 4.00 MB (2,097,152 parameters, assuming bf16)\n"));
}

TEST_CASE("breakdown text: parts that exceed the peak are reported") {
  memprof::breakdown_options options;
  options.model_size = 2048LL << 20;
  // 2048 + 4096 + 192.95 + 2513.69 = 8850.64, less 8278.65 is 571.99
  CHECK(contains(
      report(memory_efficient_text(), options),
      "  The parts without Other add up to 8,850.64 MB, 571.99 MB more than the peak: they were not live at the same time.\n"));
}

TEST_CASE("breakdown text: remarks of the log and of the division are notes") {
  const std::string text = report(memory_efficient_text().substr(header_text.size()));
  CHECK(contains(text, "\n--- Notes ---\n  the line \"=== Memory Usage Summary ===\" is missing: "));
  CHECK(contains(text, "  the peak is divided using the measured size of the model.\n"));
}

TEST_CASE("breakdown text: the logs are named only where numbers come from logs") {
  memprof::profile profile;
  profile.exact = true;
  profile.spaces.emplace_back();
  const auto text_of = [&] { return memprof::to_text(std::vector{analyzed(profile)}, memprof::breakdown_options{}); };
  CHECK(!contains(text_of(), "logs"));
  profile.facts.push_back(memprof::extend::to_table<memprof::model_parameters>({{1 << 20}}));
  CHECK(contains(text_of(), "calculated from the number of parameters: 2.00 MiB (1,048,576 parameters, assuming bf16)\n"));
  CHECK(!contains(text_of(), "logs"));
}

TEST_CASE("breakdown text: more than 16 segments are folded by name") {
  std::string log = header_text;
  for (int step = 1; step <= 30; ++step) {
    log += segment_text("FORWARD_PASS", "2.00", "+1.00", "2.00", "1.00");
    log += segment_text("BACKWARD_PASS", step == 20 ? "99.00" : "1.00", "-1.00", step < 20 ? "2.00" : "100.00", "0.00");
  }
  const std::string text = report(log + totals_text("100.00", "0.00"));
  CHECK(contains(text,
                 "\n--- Segments, by name ---\n"
                 "     Count        Max Peak     Mean Change    Last Current  Segment\n"
                 "        30         2.00 MB        +1.00 MB         1.00 MB  FORWARD_PASS\n"
                 "        30        99.00 MB        -1.00 MB         0.00 MB  BACKWARD_PASS  <- overall peak\n"
                 "  --json has every segment.\n"));
  CHECK(contains(text, "  Peak Segment:         BACKWARD_PASS (40 of 60)\n"));
}

TEST_CASE("breakdown text: of very many names those that differ in numbers share a row, and the greatest have theirs") {
  std::string log = header_text;
  std::string many = header_text;
  for (int count = 1; count <= 60; ++count) {
    const std::string peak = std::to_string(count) + ".00";
    log += segment_text("PHASE_" + std::to_string(count), peak, "+0.00", peak, "0.00");
    many += segment_text(std::string(static_cast<std::size_t>(count), 'p'), peak, "+0.00", peak, "0.00");
  }
  CHECK(contains(report(log + totals_text("60.00", "0.00")),
                 "        60        60.00 MB        +0.00 MB         0.00 MB  PHASE_*\n"));
  const std::string text = report(many + totals_text("60.00", "0.00"));
  CHECK(contains(text, "  " + std::string(37, 'p') + "\n"));
  CHECK(!contains(text, "  " + std::string(36, 'p') + "\n"));
  CHECK(contains(text, "  " + std::string(60, 'p') + "  <- overall peak\n"));
  CHECK(contains(text, "(36 names not shown)\n"));
}

TEST_CASE("breakdown text: of a long run it is said which of all segments has the peak, and how many are kept") {
  memprof::profile profile;
  profile.exact = true;
  profile.segment_count = 3000;
  profile.segments = {{"FORWARD_PASS", 0, 0, 0}, {"BACKWARD_PASS", 0, 0, 2000}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.segments.resize(2);
  space.segments[1].segment = "BACKWARD_PASS";
  space.peak_segment = 1;
  const std::string text = to_text(analyzed(profile), "run");
  CHECK(contains(text, "  Peak Segment:         BACKWARD_PASS (2001 of 3000)\n"));
  CHECK(contains(text, "  --json has the 2 segments that the profile keeps.\n"));
}

TEST_CASE("breakdown text: names from logs cannot bring control characters to the terminal") {
  memprof::profile profile;
  profile.exact = true;
  profile.provenance.section = "a\x1b[2Jb";
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.segments.resize(1);
  space.segments[0].segment = "c\nd";
  const std::string text = memprof::to_text(std::vector{analyzed(profile)}, memprof::breakdown_options{});
  CHECK(contains(text, "Section: a\\x1b[2Jb\n"));
  CHECK(contains(text, "  c\\nd"));
}

TEST_CASE("breakdown text: digits are grouped in threes") {
  using memprof::detail::with_thousands;
  CHECK(with_thousands("1") == "1");
  CHECK(with_thousands("999.99") == "999.99");
  CHECK(with_thousands("1000.00") == "1,000.00");
  CHECK(with_thousands("-123456") == "-123,456");
  CHECK(with_thousands("-1234567.5") == "-1,234,567.5");
}

}  // namespace memprof_tests::report_breakdown_text
