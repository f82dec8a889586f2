#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/report/text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <clocale>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t mib = 1 << 20;

/// Two segments of a training step, with the peak of 8 MiB in the second.
memprof::profile training_step() {
  memprof::profile profile;
  profile.complete = true;
  profile.segments = {{"MODEL_CREATION", 0, 0}, {"FORWARD_PASS", 0, 0}};
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cpu";
  space.segments.resize(2);
  space.cumulative_peak = 8 * mib;
  space.cumulative_current = 3 * mib;
  space.peak_segment = 1;
  space.peak_time_ns = 1'234'500'000;
  space.peak_operation = "gpt/block_1/mlp";
  space.live_at_peak.bytes = 8 * mib;
  space.live_at_peak.blocks = 16;
  space.live_at_peak.by_operation = {{"gpt/block_0/mlp", 3 * mib, 5}, {"gpt/block_1/mlp", 2 * mib, 4}, {"", mib, 1},
                                     {"gpt/embedding", mib / 2, 1},   {"gpt/head", mib / 4, 1},        {"gpt/norm", mib / 4, 2}};
  space.live_at_peak.remaining_bytes = mib;
  space.live_at_peak.remaining_operations = 2;
  space.live_at_peak.by_category = {{"activation", 6 * mib, 12}, {"parameter", 2 * mib, 4}};
  space.live_at_peak.largest_blocks = {{0x10, mib, "gpt/block_0/mlp", memprof::category::activation, "hidden", "[512, 512]",
                                        "float32", memprof::requires_grad::yes},
                                       {0xabcdef, mib / 2, "", memprof::category::other, "", "", ""}};
  profile.cost.events = 1234;
  profile.cost.memory_bytes = 3 * mib / 2;
  profile.cost.record_ns_per_event = 8.04;
  profile.cost.drain_ns_per_event = 3.96;
  return profile;
}

/// The text after the lines that the tracker of tt-train prints too.
std::string explanation(const memprof::profile& profile, const memprof::text_options& options = {}) {
  const std::string text = memprof::to_text(profile, options);
  return text.substr(text.find("\n\nDRAM stands") + 2);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("text: it says the peak, where it was, and whose it was") {
  CHECK(explanation(training_step()) ==
        "DRAM stands for the memory space cpu.\n"
        "Peak of cpu: 8.00 MB (8388608 bytes), 1.234 s after the capture began,\n"
        "  in segment FORWARD_PASS (2 of 2), in operation gpt/block_1/mlp\n"
        "  Largest owners at that moment:\n"
        "        3.00 MB    37.5 %  gpt/block_0/mlp (5 blocks)\n"
        "        2.00 MB    25.0 %  gpt/block_1/mlp (4 blocks)\n"
        "        1.00 MB    12.5 %  outside every operation (1 block)\n"
        "        0.50 MB     6.2 %  gpt/embedding (1 block)\n"
        "        0.25 MB     3.1 %  gpt/head (1 block)\n"
        "        1.25 MB    15.6 %  3 further operations\n"
        "  By category:\n"
        "        6.00 MB    75.0 %  activation (12 blocks)\n"
        "        2.00 MB    25.0 %  parameter (4 blocks)\n"
        "  Largest blocks:\n"
        "        1.00 MB    12.5 %  hidden [512, 512] float32 requires_grad, activation, allocated in operation gpt/block_0/mlp\n"
        "        0.50 MB     6.2 %  0xabcdef, allocated outside every operation\n"
        "The profiler itself: 1.50 MB of memory, 1234 events, 8.0 ns to record and 4.0 ns to account for each\n");
}

TEST_CASE("text: the options bound its tables") {
  const std::string text = explanation(training_step(), {.owners = 1, .largest_blocks = 0});
  CHECK(contains(text, "gpt/block_0/mlp (5 blocks)\n        5.00 MB    62.5 %  7 further operations\n"));
  CHECK(!contains(text, "Largest blocks"));
}

TEST_CASE("text: of a space with a capacity it says whether it would have fitted") {
  memprof::profile profile = training_step();
  profile.device = "small";
  profile.spaces[0].capacity = 8 * mib + mib / 2;
  const std::string text = explanation(profile, {.owners = 0, .largest_blocks = 0});
  CHECK(contains(text, "DRAM stands for the memory space cpu.\nDevice small.\n"));
  CHECK(contains(text, "parameter (4 blocks)\ncpu would not have been full: at its peak 0.50 MB were free of 8.50 MB\nThe prof"));
  profile.spaces[0].capacity = 0;
  CHECK(contains(explanation(profile), "\nDevice small limits none of these memory spaces.\n"));
  CHECK(!contains(explanation(profile), "full"));
}

TEST_CASE(
    "text: the first allocation beyond a capacity is told with what was free, who held the rest and what would have helped") {
  memprof::profile profile = training_step();
  memprof::space_profile& space = profile.spaces[0];
  space.capacity = 5 * mib;
  memprof::capacity_shortfall& full = space.first_shortfall;
  full.requested = 2 * mib;
  full.operation = "gpt/block_0/mlp";
  full.category = memprof::category::activation;
  full.segment = 1;
  full.time_ns = 1'200'000'000;
  full.free = mib / 2;
  full.shortfall = 3 * mib / 2;
  full.held.bytes = 9 * mib / 2;
  full.held.by_operation = {{"gpt/block_0/mlp", 3 * mib, 5}, {"gpt/embedding", 3 * mib / 2, 1}};
  full.held.by_category = {{"activation", 9 * mib / 2, 6}};
  full.held.largest_blocks = {{0x10, mib, "gpt/block_0/mlp", memprof::category::other, "", "", ""}};
  full.remedy = {{"gpt/embedding", 3 * mib / 2, 1}};
  const auto shown = [&] {
    const std::string text = explanation(profile);
    return text.substr(text.find("cpu would"));
  };
  CHECK(
      shown().starts_with("cpu would have been full: 2.00 MB more were asked for, 1.200 s after the capture began,\n"
                          "  in segment FORWARD_PASS (2 of 2), in operation gpt/block_0/mlp, for category activation;\n"
                          "  0.50 MB were free of 5.00 MB, 1.50 MB too few.\n"
                          "  Freeing what gpt/embedding held, 1.50 MB in 1 block, would have been enough.\n"
                          "  Largest owners at that moment:\n"
                          "        3.00 MB    66.7 %  gpt/block_0/mlp (5 blocks)\n"
                          "        1.50 MB    33.3 %  gpt/embedding (1 block)\n"
                          "  By category:\n"
                          "        4.50 MB   100.0 %  activation (6 blocks)\n"
                          "  Largest blocks:\n"
                          "        1.00 MB    22.2 %  0x10, allocated in operation gpt/block_0/mlp\n"
                          "The profiler itself"));

  full.remedy = full.held.by_operation;
  CHECK(contains(shown(), "  Freeing what the largest 2 owners held, 4.50 MB together, would have been enough; no single one"));
  full.remedy.clear();
  CHECK(contains(shown(), "  Freeing all of it would not have been enough: more was asked for than the capacity.\n"));
  full.holders_known = false;
  CHECK(contains(shown(), "  Who held the rest is not known: the profiler itself got no memory.\nThe profiler itself"));
}

TEST_CASE("text: a capacity of each core is compared with the busiest core, and a shortfall names the core") {
  memprof::profile profile = training_step();
  memprof::space_profile& space = profile.spaces[0];
  space.capacity = 3 * mib / 2;
  space.capacity_is_per_core = true;
  CHECK(contains(
      explanation(profile),
      "\nWhether cpu would have been full is not known: each core has 1.50 MB, but no block was told on cores\nThe prof"));
  space.cores.ranges = {{"[0-0 - 7-7]", {0, 0, 0, ""}}};
  CHECK(contains(explanation(profile),
                 "\ncpu would not have been full: at its peak 1.50 MB were free of 1.50 MB on each core\nThe"));
  space.cores.peaks = {mib, mib / 4, 5 * mib / 4, "3-1"};
  CHECK(contains(explanation(profile),
                 "\ncpu would not have been full: at its peak 0.25 MB were free of 1.50 MB on core 3-1\nThe"));
  space.first_shortfall.requested = mib;
  space.first_shortfall.core = "3-1";
  space.first_shortfall.operation = "matmul";
  space.first_shortfall.segment = -1;
  space.first_shortfall.free = mib / 2;
  space.first_shortfall.shortfall = mib / 2;
  CHECK(contains(explanation(profile),
                 "\ncpu would have been full on core 3-1: 1.00 MB more were asked for, 0.000 s after the "
                 "capture began,\n  in operation matmul;\n  0.50 MB were free of 1.50 MB, 0.50 MB too few.\n"));
}

TEST_CASE("text: categories are left out if none was set") {
  memprof::profile profile = training_step();
  profile.spaces[0].live_at_peak.by_category = {{"other", 8 * mib, 16}};
  CHECK(!contains(explanation(profile), "By category"));
}

TEST_CASE("text: a profile that is not exact is called so loudly, before its numbers, with the reasons") {
  memprof::profile profile = training_step();
  profile.exact = false;
  profile.anomalies.dropped_events = 12;
  profile.anomalies.reentrant_events = 1;
  profile.anomalies.rejected_events = 2;
  profile.spaces[0].anomalies.untracked_allocations = {1, mib};
  CHECK(contains(explanation(profile),
                 "DRAM stands for the memory space cpu.\n"
                 "WARNING: NOT EXACT, totals may be too small, and live bytes and peaks too small or too large\n"
                 "  12 events were dropped because a ring was full (overflow::drop; a larger ring_capacity drops fewer, "
                 "overflow::drain none)\n"
                 "  1 event was lost because a signal handler allocated or freed while another event was recorded\n"
                 "  2 events were rejected: impossible values, or no memory to keep them\n"
                 "  1 allocation in cpu (1.00 MB) could not be kept because the profiler itself got no memory\n"
                 "Peak of cpu"));
  memprof::profile separate = training_step();
  separate.exact = false;
  separate.facts = {memprof::to_table<memprof::unrecorded_module>({{"/opt/plugins/attention.so"}})};
  CHECK(contains(explanation(separate),
                 "too large\n  what /opt/plugins/attention.so allocated is missing: it has a registry of its own; link the "
                 "executable with -rdynamic (CMake: ENABLE_EXPORTS ON)\n"));
  memprof::profile unexplained = training_step();
  unexplained.exact = false;
  CHECK(contains(explanation(unexplained), "too large\n  the profile does not say why\n"));
  CHECK(!contains(explanation(training_step()), "EXACT"));
}

TEST_CASE("text: what was unusual is said in words, and only that") {
  memprof::profile profile = training_step();
  CHECK(!contains(explanation(profile), "Unusual"));
  memprof::space_anomalies& found = profile.spaces[0].anomalies;
  found.unmatched_frees = {2, 3 * mib};
  found.replaced_allocations = {1, mib};
  found.mismatched_sizes = {1, 2 * mib};
  found.cross_thread_frees = {7, mib};
  found.unknown_annotations = {1, 0};
  profile.anomalies.unbalanced_scopes = 2;
  profile.facts = {
      memprof::to_table<memprof::incomplete_trace_file>({{"run.memtrace", "its disk was too slow", 1234}, {"b", "no room", 0}})};
  CHECK(contains(explanation(profile),
                 "Unusual:\n"
                 "  2 frees in cpu of blocks that the capture never saw allocated (3.00 MB): not counted as deallocations\n"
                 "  1 allocation in cpu at the address of a live block (1.00 MB): the older block counts as deallocated\n"
                 "  1 free in cpu that told another size than was allocated (2.00 MB): the allocated size counts\n"
                 "  7 frees in cpu by another thread than the one that allocated (1.00 MB): usual in pipelines\n"
                 "  1 annotation in cpu of an address that was not live\n"
                 "  the trace file run.memtrace lacks 1234 events: its disk was too slow\n"
                 "  the trace file b: no room\n"
                 "  2 operations without a begin or an end\n"
                 "The profiler itself"));
}

TEST_CASE("text: what shares a row is said with what to do about it") {
  memprof::profile profile = training_step();
  profile.anomalies.other_segments = 1;
  profile.anomalies.other_operations = 1200;
  profile.anomalies.other_names = 7;
  profile.spaces.emplace_back().stands_for_others = true;
  CHECK(contains(explanation(profile),
                 "Unusual:\n"
                 "  1 segment ended without a row of their own: give the phases of every step the same names (or raise "
                 "segment_names)\n"
                 "  1200 operations ran without a row of their own: leave numbers that grow out of their names (or raise "
                 "operations)\n"
                 "  7 events have names beyond the 65,536 that a process has room for: leave numbers that grow out of them\n"
                 "  memory spaces beyond the 254th share one: give blocks of the same kind the same space\n"
                 "The profiler itself"));
}

TEST_CASE("text: the state of the capture is said if it is not the usual one") {
  memprof::profile profile = training_step();
  profile.complete = false;
  profile.mode = memprof::run_mode::no_dispatch;
  CHECK(contains(explanation(profile),
                 "Run mode no_dispatch: sizes and lifetimes are real, nothing was allocated.\n"
                 "The capture has not ended: the numbers are those so far.\n"));
}

TEST_CASE("text: the peak of every space is told, save of further ones that had nothing") {
  memprof::profile profile = training_step();
  profile.spaces.push_back(profile.spaces[0]);
  profile.spaces.back().name = "cuda:0";
  profile.spaces.emplace_back().name = "idle";
  const std::string text = explanation(profile);
  CHECK(contains(text, "Peak of cpu: 8.00 MB"));
  CHECK(contains(text, "Peak of cuda:0: 8.00 MB"));
  CHECK(!contains(text, "Peak of idle"));
  CHECK(contains(explanation(profile, {.primary_space = "idle"}), "Peak of idle: 0.00 MB (0 bytes), nothing was live\n"));
}

TEST_CASE("text: before the first segment the peak is told all the same") {
  memprof::profile profile = training_step();
  profile.segments.clear();
  profile.spaces[0].segments.clear();
  profile.spaces[0].peak_segment = -1;
  const std::string text = memprof::to_text(profile);
  CHECK(text.starts_with("WARNING: No traces captured\nDRAM stands for the memory space cpu.\nPeak of cpu: 8.00 MB"));
  CHECK(contains(text, "began,\n  in operation gpt/block_1/mlp\n"));
}

TEST_CASE("text: the profiler's memory at a million events is told once there were so many") {
  memprof::profile profile = training_step();
  profile.cost.memory_bytes_at_million_events = mib;
  CHECK(contains(explanation(profile), "1.50 MB of memory (1.00 MB when it had seen a million events), 1234 events"));
}

TEST_CASE("text: numbers have a point whatever the locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const char* const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
  const char* set = nullptr;
  for (const char* const name : names) {
    if (set == nullptr) set = std::setlocale(LC_ALL, name);
  }
  const std::string text = memprof::to_text(training_step());
  std::setlocale(LC_ALL, before.c_str());
  if (set == nullptr) SKIP("no locale with a decimal comma is installed");
  CHECK(contains(text, "Overall DRAM Peak: 8.00 MB"));
}

TEST_CASE("text: megabytes of any bytes") {
  using memprof::detail::megabytes;
  using memprof::detail::signed_megabytes;
  CHECK(megabytes(0) == "0.00 MB");
  CHECK(megabytes(5242) == "0.00 MB");  // 0.00499...
  CHECK(megabytes(5243) == "0.01 MB");  // 0.00500...
  CHECK(megabytes(-mib) == "-1.00 MB");
  CHECK(signed_megabytes(0) == "+0.00 MB");
  CHECK(signed_megabytes(-3 * mib / 2) == "-1.50 MB");
  CHECK(megabytes(std::numeric_limits<std::int64_t>::max()) == "8796093022208.00 MB");
  CHECK(signed_megabytes(std::numeric_limits<std::int64_t>::min()) == "-8796093022208.00 MB");
}

TEST_CASE("text: what an allocator reserved stands with the peak of its space") {
  memprof::profile profile = training_step();
  profile.spaces[0].reserved.peak = 20 * mib;
  profile.spaces[0].reserved.current = 6 * mib;
  CHECK(contains(explanation(profile),
                 "in operation gpt/block_1/mlp\n  Reserved by its allocator: at most 20.00 MB (20971520 "
                 "bytes), 12.00 MB more than was ever live, 6.00 MB at the end\n"));
  profile.spaces[0].reserved.unmatched_releases = {2, mib};
  CHECK(contains(explanation(profile), "  2 releases in cpu of memory that the capture never saw reserved (1.00 MB)\n"));
  profile.spaces[0].reserved.replaced_reservations = {1, mib};
  CHECK(contains(explanation(profile),
                 "  1 reservation in cpu of memory that was reserved already (1.00 MB): the older one counts as released\n"));
}

TEST_CASE("text: streams and pools are a table where more than the allocator's own pool on one stream was used") {
  memprof::profile profile = training_step();
  std::vector<memprof::stream_usage>& streams = profile.spaces[0].streams;
  streams = {{"default", "", mib, 0, 3, 2 * mib, 2 * mib}};
  CHECK(!contains(explanation(profile), "By stream and pool"));
  streams[0].pool = "unknown";
  CHECK(!contains(explanation(profile), "By stream and pool"));
  streams = {{"0xab0", "0:1", 7 * mib, mib, 12, 40 * mib, 20 * mib},
             {"default", "", mib, 0, 3, 2 * mib, 2 * mib},
             {"default", "unknown", mib, 0, 1, 0, 0},
             {"(beyond the first 64 streams and pools)", "", mib, 0, 99, mib, 0}};
  CHECK(contains(explanation(profile),
                 "in operation gpt/block_1/mlp\n"
                 "  By stream and pool:\n"
                 "   Reserved peak  Reserved now      Live peak       Live now  Allocations\n"
                 "        40.00 MB      20.00 MB        7.00 MB        1.00 MB           12  stream 0xab0, private pool 0:1\n"
                 "         2.00 MB       2.00 MB        1.00 MB        0.00 MB            3  stream default\n"
                 "         0.00 MB       0.00 MB        1.00 MB        0.00 MB            1  stream default, pool unknown\n"
                 "         1.00 MB       0.00 MB        1.00 MB        0.00 MB           99  (beyond the first 64 streams and "
                 "pools)\n"
                 "  Largest owners at that moment:\n"));
  CHECK(contains(explanation(profile, {.streams = 1}), "private pool 0:1\n    (3 more)\n  Largest owners"));
}

TEST_CASE("text: an allocation that the device had no memory for stands before the peak of its space") {
  memprof::profile profile = training_step();
  memprof::space_profile& space = profile.spaces[0];
  space.out_of_memory = {{80 * mib, 3 * mib, 8 * mib, 20 * mib, "gpt/head", 1, 2'000'000'000}};
  CHECK(contains(explanation(profile),
                 "cpu.\ncpu WAS OUT OF MEMORY: 80.00 MB were asked for, 2.000 s after the capture began,\n"
                 "  in segment FORWARD_PASS (2 of 2), in operation gpt/head;\n"
                 "  3.00 MB were free on the device, 20.00 MB reserved by its allocator, 8.00 MB of them live\n"
                 "Peak of cpu: "));
  space.out_of_memory.resize(4);
  space.further_out_of_memory = {5, 5 * mib};
  CHECK(contains(explanation(profile), "0.00 MB of them live\n  and 6 further times\nPeak of cpu: "));
}

TEST_CASE("text: what could not be captured is a warning") {
  memprof::profile profile = training_step();
  profile.facts = {memprof::to_table<memprof::missing_source>({{"CUDA", "there is no CUDA device"}})};
  CHECK(contains(explanation(profile), "cpu.\nWARNING: NOT CAPTURED: CUDA: there is no CUDA device\nPeak of cpu: "));
  memprof::profile nothing;
  nothing.facts = profile.facts;
  CHECK(contains(memprof::to_text(nothing), "WARNING: NOT CAPTURED: CUDA: there is no CUDA device\n"));
}

TEST_CASE("text: PyTorch's operators are a table, and what was estimated is said") {
  memprof::profile profile = training_step();
  profile.facts = {
      memprof::to_table<memprof::pytorch_operation>(
          {{"aten::addmm", "[8], [4, 2], [2, 8]", 16, 85'250'000, 0, 3 * mib, 0}, {"aten::relu", "", 1, 1'000, 0, -mib, mib}}),
      memprof::to_table<memprof::approximated_operation>({{"my::op", "no rule", 1, 2 * mib}, {"my::other", "no rule", 2, 0}})};
  CHECK(contains(explanation(profile),
                 "PyTorch operators:\n"
                 "      Calls       CPU time       CPU memory    Device memory  Operator and input shapes\n"
                 "         16      85.250 ms         +3.00 MB         +0.00 MB  aten::addmm [8], [4, 2], [2, 8]\n"
                 "          1       0.001 ms         -1.00 MB         +1.00 MB  aten::relu\n"
                 "Estimated, not exact:\n"
                 "  my::op: 1 call, 2.00 MB; no rule\n"
                 "  my::other: 2 calls, 0.00 MB; no rule\n"));
  const std::string short_text = explanation(profile, {.pytorch_operations = 1});
  CHECK(contains(short_text, "aten::addmm [8], [4, 2], [2, 8]\n    (1 more operators or shapes)\n"));
  CHECK(contains(short_text, "my::op: 1 call, 2.00 MB; no rule\n    (1 more operations)\n"));
}
