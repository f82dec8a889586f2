#include <memprof/report/breakdown_text.hpp>

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/format/tracker_log.hpp>

#include <unit/format/tracker_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace memprof_tests;

namespace {

std::vector<memprof::analyzed_summary> analyze(const std::string& log, const memprof::breakdown_options& options = {}) {
  std::vector<memprof::analyzed_summary> result;
  for (const auto& summary : memprof::parse_tracker_log(log, "run.log"))
    result.push_back({summary, break_down(summary, options)});
  return result;
}

std::string report(const std::string& log, const memprof::breakdown_options& options = {}) {
  return memprof::to_text(analyze(log, options), options);
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
  memprof::memory_summary summary;
  summary.space = "cuda:0";
  summary.device = "gpu-24gb";
  summary.capacity = std::int64_t{24'207} << 20;
  summary.overall_peak = std::int64_t{25'000} << 20;
  const std::string text = to_text(memprof::analyzed_summary{summary, break_down(summary)});
  CHECK(contains(text, "  Device Memory:        24,207.00 MB (from the profile: cuda:0 of gpu-24gb)\n"));
  CHECK(contains(text, "  Fits:                 no, 793.00 MB too much\n"));
  const std::string given = to_text(memprof::analyzed_summary{summary, break_down(summary, {.device_memory = 1 << 20})});
  CHECK(contains(given, "  Device Memory:        1.00 MB\n"));
}

TEST_CASE("breakdown text: without a model size nothing is compared, and the option is named") {
  const std::string text = report(memory_efficient_text());
  CHECK(contains(text, "Model size not provided and not in the logs: give --model-size"));
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

TEST_CASE("breakdown text: parts that exceed the peak are told") {
  memprof::breakdown_options options;
  options.model_size = 2048LL << 20;
  // 2048 + 4096 + 192.95 + 2513.69 = 8850.64, less 8278.65 is 571.99
  CHECK(contains(
      report(memory_efficient_text(), options),
      "  The parts without Other are 8,850.64 MB, 571.99 MB more than the peak: they were not live at the same moment.\n"));
}

TEST_CASE("breakdown text: remarks of the log and of the division are notes") {
  const std::string text = report(memory_efficient_text().substr(header_text.size()));
  CHECK(contains(text, "\n--- Notes ---\n  the line \"=== Memory Usage Summary ===\" is missing: "));
  CHECK(contains(text, "  the peak is divided with the measured size of the model.\n"));
}

TEST_CASE("breakdown text: of very many segments the first are shown, and the one with the peak") {
  std::string log = header_text;
  for (int count = 1; count <= 60; ++count) {
    const std::string peak = std::to_string(count == 50 ? 99 : 1) + ".00";
    log += segment_text("PHASE_" + std::to_string(count), peak, "+0.00", count < 50 ? "1.00" : "99.00", "0.00");
  }
  const std::string text = report(log + totals_text("99.00", "0.00"));
  CHECK(contains(text, "PHASE_40\n"));
  CHECK(!contains(text, "PHASE_41\n"));
  CHECK(contains(text, "PHASE_50  <- overall peak\n"));
  CHECK(contains(text, "(19 segments are left out here; --json has all)\n"));
}

TEST_CASE("breakdown text: names from logs cannot bring control characters to the terminal") {
  memprof::memory_summary summary;
  summary.section = "a\x1b[2Jb";
  summary.segments.resize(1);
  summary.segments[0].segment = "c\nd";
  CHECK(contains(to_text(memprof::analyzed_summary{summary, break_down(summary)}), "Section: a\\x1b[2Jb\n"));
  CHECK(contains(to_text(memprof::analyzed_summary{summary, break_down(summary)}), "  c\\nd"));
}

TEST_CASE("breakdown text: digits are grouped in threes") {
  using memprof::detail::with_thousands;
  CHECK(with_thousands("1") == "1");
  CHECK(with_thousands("999.99") == "999.99");
  CHECK(with_thousands("1000.00") == "1,000.00");
  CHECK(with_thousands("-123456") == "-123,456");
  CHECK(with_thousands("-1234567.5") == "-1,234,567.5");
}
