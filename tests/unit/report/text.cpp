#include <memprof/detail/error.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/device_context.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests::report_text {

namespace {

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t gib = 1 << 30;

/// A training of three steps: a model of 2 MiB, and in each step activations of 5 MiB that are freed again, but for `leak` bytes.
memprof::profile training(std::int64_t leak = 0) {
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.duration_ns = 1'500'000'000;
  profile.process.command_line = "train --steps 3";
  memprof::space_profile& space = profile.spaces.emplace_back();
  space.name = "cuda:0";
  std::int64_t current = 0;
  const auto add = [&](const char* name, std::int64_t peak, std::int64_t change) {
    profile.segments.push_back({name, 0, 0, -1, -1});
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment_peak = peak;
    usage.segment_change = change;
    current += change;
    usage.cumulative_current = current;
  };
  add("MODEL_CREATION", 2 * mib, 2 * mib);
  for (int step = 0; step < 3; ++step) {
    add("FORWARD_PASS", 5 * mib + step * kib, 5 * mib);
    add("BACKWARD_PASS", mib, leak - 5 * mib);
  }
  add("END_TRACE", 0, 0);
  space.cumulative_current = current;
  space.cumulative_peak = 8 * mib;
  space.peak_segment = 4;
  space.peak_time_ns = 52'100'000;
  space.peak_operation = "gpt/block_1/mlp";
  space.live_at_peak.bytes = 8 * mib;
  space.live_at_peak.blocks = 16;
  space.live_at_peak.by_operation = {{"gpt/block_0/mlp", 3 * mib, 5}, {"gpt/block_1/mlp", 2 * mib, 4}, {"", mib, 1},
                                     {"gpt/embedding", mib / 2, 1},   {"gpt/head", mib / 4, 1},        {"gpt/norm", mib / 4, 2}};
  space.live_at_peak.remaining_bytes = mib;
  space.live_at_peak.remaining_operations = 2;
  space.live_at_peak.by_category = {{"activation", 6 * mib, 12}, {"parameter", 2 * mib, 4}};
  space.live_at_peak.largest_blocks = {{0x10, 2 * mib, "gpt/block_0/mlp", memprof::category::activation, "hidden", "[512, 512]",
                                        "float32", memprof::requires_grad::yes},
                                       {0xabcdef, mib / 2, "", memprof::category::other, "", "", ""}};
  memprof::operation_profile& head = profile.operations.emplace_back();
  head.path = "gpt/head";
  head.usage.emplace_back().space = "cuda:0";
  head.usage.back().live = mib / 2;
  profile.cost.events = 1234;
  profile.cost.memory_bytes = 3 * mib / 2;
  profile.cost.record_ns_per_event = 8.04;
  profile.cost.drain_ns_per_event = 3.96;
  return profile;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The lines of the answer with that heading.
std::string answer(const std::string& text, const std::string& heading) {
  std::string found;
  bool is_within = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin + 1);
    begin = end + 1;
    if (!line.starts_with("          ")) is_within = line.starts_with(heading);
    if (is_within) found += line;
  }
  return found;
}

}  // namespace

TEST_CASE("text: answers come first, then one table of segments") {
  CHECK(memprof::to_text(training()) ==
        "memprof   train --steps 3: 3 steps in 8 segments, 1.50 s\n"
        "Peak      8.00 MiB (8,388,608 B) of cuda:0 at 52.1 ms in BACKWARD_PASS, step 2 of 3, operation\n"
        "          gpt/block_1/mlp\n"
        "Owners    activation 6.00 MiB (75.0 %), parameter 2.00 MiB (25.0 %)\n"
        "          3.00 MiB  37.5 %  5 blocks  gpt/block_0/mlp          activation\n"
        "          2.00 MiB  25.0 %  4 blocks  gpt/block_1/mlp\n"
        "          1.00 MiB  12.5 %   1 block  outside every operation\n"
        "           512 KiB   6.2 %   1 block  gpt/embedding\n"
        "           256 KiB   3.1 %   1 block  gpt/head\n"
        "          1.25 MiB  15.6 %            3 further operations\n"
        "Growth    0 B per step: 2.00 MiB live after each BACKWARD_PASS (3)\n"
        "At end    2.00 MiB (2,097,152 B) live\n"
        "          1.50 MiB  75.0 %  outside every operation\n"
        "           512 KiB  25.0 %  gpt/head\n"
        "Accuracy  exact: 1,234 events, none lost or unmatched; profiler 1.50 MiB, 12 ns an event\n"
        "\n"
        "Segments        Count      Peak     Change\n"
        "MODEL_CREATION      1  2.00 MiB  +2.00 MiB\n"
        "FORWARD_PASS        3  5.00 MiB  +5.00 MiB  each time within 2.00 KiB\n"
        "BACKWARD_PASS       3  1.00 MiB  -5.00 MiB  each time\n"
        "END_TRACE           1       0 B        0 B\n");
}

TEST_CASE("text: more than a tenth of the bytes without an operation is said, with the cure") {
  memprof::profile profile = training();
  memprof::space_profile& space = profile.spaces[0];
  memprof::operation_usage& head = profile.operations[0].usage[0];
  const auto workers = [&] { return answer(memprof::to_text(profile), "Workers"); };
  space.allocations = 1000;
  head.allocated = 900;
  CHECK(workers().empty());  // a tenth, not more
  head.allocated = 660;
  CHECK(workers() ==
        "Workers   34.0 % of the bytes allocated had no operation; if other threads allocate them:\n"
        "          adopt_operation, or infer_operations\n");
  SECTION("not counting twice what is nested") {
    memprof::operation_profile inner = profile.operations[0];
    inner.parent = 0;
    profile.operations.push_back(inner);
    CHECK(workers().starts_with("Workers   34.0 %"));
  }
  SECTION("and how much was inferred") {
    head.inferred = 120;
    CHECK(workers() ==
          "Workers   34.0 % of the bytes allocated had no operation\n"
          "          12.0 % of the bytes allocated are in an operation that was inferred (infer_operations)\n");
    head.allocated = 1000;
    CHECK(workers() == "Workers   12.0 % of the bytes allocated are in an operation that was inferred (infer_operations)\n");
  }
  SECTION("nothing if no operation was recorded there") {
    head.space = "cpu";
    CHECK(workers().empty());
  }
}

namespace {

/// A training with checkpoints: of two spaces, of which the smaller has the larger block.
memprof::profile training_with_checkpoints(std::int64_t count) {
  memprof::profile profile = training();
  for (std::int64_t number = 0; number < count; ++number) {
    memprof::checkpoint& point = profile.checkpoints.emplace_back();
    if (number == 0) point.name = "after_model_load";
    point.number = number;
    point.time_ns = number * 5'000'000'000;
    point.live_bytes = 3 * mib + number * mib;
    point.live_blocks = 1500 + number;
    point.spaces = {{"cpu", 2 * mib + number * mib, 1499 + number, {}}, {"cuda:0", mib, 1, {}}};
    point.spaces[0].largest_blocks = {{0x10, mib / 4, "", memprof::category::other, "", "", ""}};
    point.spaces[1].largest_blocks = {{0x20, mib, "gpt/head/aten::addmm", memprof::category::activation, "", "[256, 1024]",
                                       "float32", memprof::requires_grad::yes}};
  }
  profile.checkpoint_count = count;
  return profile;
}

std::string checkpoints_of(const std::string& text) {
  const std::size_t begin = text.find("\nCheckpoint ");
  return begin == std::string::npos ? "" : text.substr(begin + 1);
}

}  // namespace

TEST_CASE("text: checkpoints are a table of what was live, with the largest block of all spaces") {
  CHECK(checkpoints_of(memprof::to_text(training())).empty());
  CHECK(checkpoints_of(memprof::to_text(training_with_checkpoints(2), {.columns = 110})) ==
        "Checkpoint          Time      Live  Blocks   Largest  Block                              Operation\n"
        "after_model_load    0 ns  3.00 MiB   1,500  1.00 MiB  [256, 1024] float32 requires_grad  gpt/head/aten::addmm\n"
        "(periodic)        5.00 s  4.00 MiB   1,501  1.00 MiB  [256, 1024] float32 requires_grad  gpt/head/aten::addmm\n");
}

TEST_CASE("text: of many checkpoints the first, the last and some between are shown, and how many others there are") {
  memprof::profile profile = training_with_checkpoints(128);
  profile.checkpoint_count = 5000;
  const std::string text = checkpoints_of(memprof::to_text(profile));
  for (const char* part : {"after_model_load", " 3 min 30 s ", " 7 min 00 s ", " 10 min 35 s "}) CHECK(contains(text, part));
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);
  CHECK(contains(text, "124 further checkpoints, and 4,872 not kept in the profile\n"));
  const std::string all = checkpoints_of(memprof::to_text(profile, {.largest_blocks = 2, .checkpoints = 1000}));
  CHECK(std::count(all.begin(), all.end(), '\n') == 1 + 2 * 128 + 1);
  CHECK(contains(all, "256 KiB  0x10"));
  CHECK(contains(all, "4,872 checkpoints not kept in the profile\n"));
  CHECK(checkpoints_of(memprof::to_text(profile, {.checkpoints = 0})).empty());
}

namespace {

/// Twenty steps of constant weights in cuda:0, and of each of `leaks` bytes that stay in a space of its own.
memprof::profile training_with_leaks(const std::vector<std::pair<std::string, std::int64_t>>& leaks) {
  constexpr std::int64_t steps = 20;
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.process.command_line = "train";
  for (std::int64_t step = 0; step < steps; ++step) profile.segments.push_back({"STEP", 0, 0, -1, -1});
  const auto add = [&](const std::string& name, std::int64_t weights, std::int64_t leak) {
    memprof::space_profile& space = profile.spaces.emplace_back();
    space.name = name;
    for (std::int64_t step = 0; step < steps; ++step) {
      memprof::segment_usage& usage = space.segments.emplace_back();
      usage.segment_change = usage.segment_peak = leak + (step == 0 ? weights : 0);
      usage.cumulative_current = weights + (step + 1) * leak;
    }
    space.cumulative_peak = space.cumulative_current = weights + steps * leak;
    space.peak_segment = steps - 1;
  };
  add("cuda:0", 100 * mib, 0);
  for (const auto& [name, leak] : leaks) add(name, 0, leak);
  return profile;
}

}  // namespace

TEST_CASE("text: segments whose numbers differ show first, last, least, greatest and mean") {
  memprof::profile profile = training(mib);
  profile.spaces[0].segments[3].segment_peak = 8 * mib;  // of the second step
  const std::string text = memprof::to_text(profile);
  CHECK(text.substr(text.find("\n\n") + 2) ==
        "Segments: peak  Count      First       Last        Min        Max       Mean\n"
        "MODEL_CREATION      1   2.00 MiB  change +2.00 MiB\n"
        "FORWARD_PASS        3   5.00 MiB   5.00 MiB   5.00 MiB   8.00 MiB   6.00 MiB\n"
        "  change               +5.00 MiB  +5.00 MiB  +5.00 MiB  +5.00 MiB  +5.00 MiB\n"
        "BACKWARD_PASS       3   1.00 MiB  change -4.00 MiB, each time\n"
        "END_TRACE           1        0 B  change 0 B\n");
  CHECK(answer(text, "Growth") == "Growth    +1.00 MiB per step; live after BACKWARD_PASS: first 3.00 MiB, last 5.00 MiB\n");
}

TEST_CASE("text: growth has an owner where the profile names one") {
  memprof::profile profile = training(mib);
  memprof::vector<memprof::owner_growth>& growing = profile.spaces[0].growing;
  const auto line = [&] { return answer(memprof::to_text(profile, {.columns = 200}), "Growth"); };
  const std::string live = "; live after BACKWARD_PASS: first 3.00 MiB, last 5.00 MiB\n";
  growing = {{"log_metrics", 256, 0, 1, 40}};
  CHECK(line() == "Growth    +256 B per step by log_metrics, since step 1" + live);
  CHECK(answer(memprof::to_text(profile, {.columns = 80}), "Growth") ==
        "Growth    +256 B per step by log_metrics, since step 1; live after\n"
        "          BACKWARD_PASS: first 3.00 MiB, last 5.00 MiB\n");
  growing = {{"log_metrics", 256, 512, 16, 1'000}};
  CHECK(line() == "Growth    +256 B per step by log_metrics, since about step 513" + live);
  growing = {{"log_metrics", 256, -1, 16, 1'000}};
  CHECK(line() == "Growth    +256 B per step by log_metrics" + live);
  growing = {{"", 0.125, 3, 1, 100}};
  CHECK(line() == "Growth    +0.125 B per step outside every operation, since step 4" + live);
  growing = {{std::string{memprof::detail::reserved_beyond_blocks}, 4'096, 0, 1, 100}};
  CHECK(line() == "Growth    +4.00 KiB per step reserved, but in no block, since step 1" + live);
  growing = {{"a/b", 2'048, 0, 4, 100}, {"c", 1'024, 60, 4, 100}, {"d", 512, 60, 4, 100}};
  CHECK(line() == "Growth    +3.50 KiB per step, 2.00 KiB of it by a/b, since step 1" + live);
  // What is live need not tell: something else shrinks.
  for (const std::size_t segment : {2U, 4U, 6U}) profile.spaces[0].segments[segment].cumulative_current = mib;
  growing = {{"log_metrics", 256, 0, 1, 40}};
  CHECK(line() ==
        "Growth    +256 B per step by log_metrics, since step 1; live after BACKWARD_PASS: first 1.00 MiB, last "
        "1.00 MiB\n");
}

TEST_CASE("text: of several spaces, one in which an owner grows is named though its sum has no trend") {
  memprof::profile profile = training_with_leaks({{"cpu", 0}, {"pinned", kib}});
  for (memprof::space_profile& space : profile.spaces) {
    if (space.name == "cpu") space.growing = {{"list", 3'072, 0, 1, 20}};
  }
  CHECK(answer(memprof::to_text(profile), "Growth") ==
        "Growth    0 B per step in cuda:0: 100 MiB live after each STEP (20)\n"
        "          +3.00 KiB per step in cpu by list, since step 1; live after STEP: first 0 B, last 0 B\n"
        "          +1.00 KiB per step in pinned; live after STEP: first 1.00 KiB, last 20.0 KiB\n");
}

TEST_CASE("text: the least and the greatest of what is live after a step are shown where neither is the first nor the last") {
  const auto growth_of = [](std::int64_t first, std::int64_t second, std::int64_t third) {
    memprof::profile profile = training();
    memprof::vector<memprof::segment_usage>& segments = profile.spaces[0].segments;
    segments[2].cumulative_current = first;
    segments[4].cumulative_current = second;
    segments[6].cumulative_current = third;
    const std::string text = answer(memprof::to_text(profile, {.columns = 200}), "Growth");
    return text.substr(text.find("first"));
  };
  CHECK(growth_of(3 * mib, 4 * mib, 5 * mib) == "first 3.00 MiB, last 5.00 MiB\n");
  CHECK(growth_of(5 * mib, 4 * mib, 3 * mib) == "first 5.00 MiB, last 3.00 MiB\n");
  CHECK(growth_of(3 * mib, 6 * mib, 5 * mib) == "first 3.00 MiB, last 5.00 MiB, max 6.00 MiB\n");
  CHECK(growth_of(3 * mib, 2 * mib, 5 * mib) == "first 3.00 MiB, last 5.00 MiB, min 2.00 MiB\n");
  // By the byte, not as printed.
  CHECK(growth_of(3 * mib, 3 * mib - 1, 3 * mib) == "first 3.00 MiB, last 3.00 MiB, min 3.00 MiB\n");
}

TEST_CASE("text: of several spaces, the table of segments names its own") {
  memprof::profile profile = training_with_leaks({{"cpu", mib}});
  const auto titles = [&](const memprof::text_options& options) {
    const std::string text = memprof::to_text(profile, options);
    return text.substr(text.find("\n\n") + 2);
  };
  CHECK(titles({}).starts_with("Segments in cuda:0: peak  Count     First  Last"));
  CHECK(titles({.primary_space = "cpu"}).starts_with("Segments in cpu  Count      Peak     Change\nSTEP "));
  CHECK(titles({.all_segments = true}).starts_with("Segment in cuda:0  Step  Begin"));
  CHECK(contains(titles({.all_spaces = true}), "\n\nSegments in cpu  Count      Peak"));
  // Where the name would make the table too wide, it has a line of its own.
  profile.spaces[0].name = "a memory space of the accelerator";
  CHECK(titles({.columns = 80}).starts_with("Segments in a memory space of the accelerator\nSegments: peak  Count     First"));
  profile.spaces.pop_back();
  CHECK(titles({}).starts_with("Segments: peak  Count"));
}

TEST_CASE("text: more owners, blocks and every segment where they are asked for") {
  const std::string text = memprof::to_text(training(), {.columns = 110, .owners = 6, .largest_blocks = 2, .all_segments = true});
  CHECK(contains(text, "256 KiB   3.1 %  2 blocks  gpt/norm\n"));
  CHECK(answer(text, "Blocks") ==
        "Blocks    2.00 MiB  25.0 %  hidden [512, 512] float32 requires_grad  activation  gpt/block_0/mlp\n"
        "           512 KiB   6.2 %  0xabcdef                                             outside every operation\n");
  CHECK(contains(text,
                 "Segment         Step  Begin      Peak     Change      Live  Allocated  Freed\n"
                 "MODEL_CREATION     1   0 ns  2.00 MiB  +2.00 MiB  2.00 MiB        0 B    0 B\n"
                 "FORWARD_PASS       1   0 ns  5.00 MiB  +5.00 MiB  7.00 MiB        0 B    0 B\n"));
  CHECK(contains(memprof::to_text(training(), {.owners = 1}),
                 "3.00 MiB  37.5 %  5 blocks  gpt/block_0/mlp  activation\n"
                 "          5.00 MiB  62.5 %            7 further operations\n"));
}

TEST_CASE("text: what is live at the end is divided by category too, where blocks have any") {
  memprof::profile profile = training();
  const auto shown = [&] { return answer(memprof::to_text(profile), "At end"); };
  profile.spaces[0].current_by_category = {{"other", 2 * mib, 4}};
  const std::string without = shown();
  profile.spaces[0].current_by_category = {{"parameter", 3 * mib / 2, 3}, {"optimizer_state", mib / 2, 1}};
  CHECK(shown() ==
        "At end    2.00 MiB (2,097,152 B) live\n"
        "          parameter 1.50 MiB (75.0 %), optimizer_state 512 KiB (25.0 %)\n"
        "          1.50 MiB  75.0 %  outside every operation\n"
        "           512 KiB  25.0 %  gpt/head\n");
  CHECK(without ==
        "At end    2.00 MiB (2,097,152 B) live\n"
        "          1.50 MiB  75.0 %  outside every operation\n"
        "           512 KiB  25.0 %  gpt/head\n");
}

TEST_CASE("text: owners whose stacks begin and end alike can be told apart") {
  memprof::profile profile = training();
  const std::string end = "/at::detail::empty_cuda/c10::cuda::NativeCachingAllocator::malloc (CUDACachingAllocator.cpp:0)";
  const std::string begin = "__clone/torch::autograd::Engine::thread_main/torch::autograd::Engine::evaluate_function/";
  profile.spaces[0].live_at_peak.by_operation = {{begin + "linear" + end, 5 * mib, 1}, {begin + "softmax" + end, 3 * mib, 1}};
  for (const std::size_t columns : {60U, 100U}) {
    const std::string owners = answer(memprof::to_text(profile, {.columns = columns}), "Owners");
    CHECK(contains(owners, "linear…"));
    CHECK(contains(owners, "softmax…"));
  }
}

TEST_CASE("text: a device is answered for: it fits, it does not, it is not known, it does not matter") {
  memprof::profile profile = training();
  CHECK(answer(memprof::to_text(profile), "Fit").empty());
  profile.device = "small";
  CHECK(answer(memprof::to_text(profile), "Fit") == "Fit       small does not limit cuda:0\n");
  memprof::space_profile& space = profile.spaces[0];
  space.capacity = 10 * mib;
  CHECK(answer(memprof::to_text(profile), "Fit") == "Fit       fits small: 2.00 MiB of 10.0 MiB free at the peak\n");
  space.capacity = 5 * mib;
  memprof::capacity_shortfall& full = space.first_shortfall;
  full.requested = 2 * mib;
  full.operation = "gpt/block_0/mlp";
  full.category = memprof::category::activation;
  full.segment = 1;
  full.time_ns = 12'000'000;
  full.free = mib / 2;
  full.shortfall = 3 * mib / 2;
  full.remedy = {{"gpt/embedding", 3 * mib / 2, 1}};
  const auto shown = [&] { return answer(memprof::to_text(profile, {.columns = 300}), "Fit"); };
  CHECK(shown() ==
        "Fit       does not fit small: 2.00 MiB requested at 12.0 ms in FORWARD_PASS, step 1 of 3, operation gpt/block_0/mlp "
        "(activation); 512 KiB free of 5.00 MiB, 1.50 MiB short, 3.00 MiB short at the peak\n"
        "          freeing gpt/embedding, 1.50 MiB in 1 block, would suffice\n");
  full.remedy.push_back({"gpt/head", mib, 1});
  CHECK(contains(shown(), "          freeing the 2 largest owners, 2.50 MiB, would suffice; no single owner does\n"));
  full.remedy.clear();
  CHECK(contains(shown(), "          freeing everything would not suffice: the request exceeds the capacity\n"));
  full.holders_known = false;
  CHECK(contains(shown(), "          owners of the rest unknown: the profiler itself ran out of memory\n"));
}

TEST_CASE("text: where lines are short, rows of owners and segments go before what the numbers mean") {
  memprof::profile profile = training();
  profile.exact = false;
  profile.mode = memprof::run_mode::no_dispatch;
  profile.device = "gpu-24gb";
  profile.process.command_line = "python3 train.py --model " + std::string(60, 'm') + " --steps 3";
  for (memprof::segment& segment : profile.segments) {
    if (segment.name == "BACKWARD_PASS") segment.name = "OPTIMIZER_STEP";
  }
  memprof::space_profile& space = profile.spaces[0];
  space.cumulative_peak = 30 * gib;
  space.capacity = 24 * gib;
  space.reserved.peak = 31 * gib;
  space.current_by_category = {{"parameter", mib, 2}, {"optimizer_state", mib, 4}};
  for (int number = 0; number < 6; ++number) {
    memprof::operation_profile& live = profile.operations.emplace_back();
    live.path = "Optimizer.step#AdamW.step/aten::zeros_like/layer_" + std::to_string(number);
    live.usage.emplace_back().space = "cuda:0";
    live.usage.back().live = 100 * kib;
  }
  space.peak_operation = space.live_at_peak.by_operation[1].owner = "Optimizer.step#AdamW.step/aten::zeros_like/aten::empty";
  memprof::capacity_shortfall& full = space.first_shortfall;
  full.requested = 30 * gib;
  full.operation = space.peak_operation;
  full.segment = 6;
  full.time_ns = 1'400'000'000;
  full.free = 23 * gib;
  full.shortfall = 7 * gib;
  memprof::space_profile& cpu = profile.spaces.emplace_back();
  cpu.name = "cpu";
  cpu.cumulative_peak = mib;
  cpu.segments.resize(profile.segments.size());
  profile.facts = {memprof::extend::to_table<memprof::unknown_read>(
                       {{"comparison of Tensor.item() at train.py:60", "", 3, 1}, {"aten::item", "", 3, 0}}),
                   memprof::extend::to_table<memprof::device_context>(
                       {{"cuda:0", 504 * mib, 473 * mib, "3 published out-of-memory messages"}})};
  for (const std::size_t columns : {80, 90, 100}) {
    const std::string text = memprof::to_text(profile, {.columns = columns});
    INFO(text);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 40);
    std::string words = answer(text, "Fit") + answer(text, "Accuracy");
    CHECK(!contains(words, " …"));
    for (std::size_t end = words.find("\n          "); end != words.npos; end = words.find("\n          "))
      words.replace(end, 11, " ");
    CHECK(contains(words, "30.0 GiB requested at 1.40 s in OPTIMIZER_STEP, step 3 of 3, operation Optimizer.step"));
    CHECK(contains(words, "; 23.0 GiB free of 24.0 GiB, 7.00 GiB short"));
    CHECK(contains(words, "what the simulation had to assume; how far the numbers are off is unknown; 1,234 events, none lost"));
    CHECK(contains(words, "train.py:60): the program may take another path"));
    CHECK(contains(words, "whether they decide anything is not seen"));
  }
}

TEST_CASE("text: what an allocator reserved must fit the device, not only what was live") {
  memprof::profile profile = training();
  profile.device = "small";
  memprof::space_profile& space = profile.spaces[0];  // 8 MiB live at the peak
  space.capacity = 10 * mib;
  const auto shown = [&] { return answer(memprof::to_text(profile, {.columns = 300}), "Fit"); };
  space.reserved.peak = 9 * mib;
  CHECK(shown() ==
        "Fit       fits small: 1.00 MiB of 10.0 MiB free when most was reserved; the device's context is not counted\n");
  space.reserved.peak = 10 * mib;
  CHECK(shown() == "Fit       fits small: 0 B of 10.0 MiB free when most was reserved; the device's context is not counted\n");
  space.reserved.peak = 13 * mib;
  CHECK(shown() ==
        "Fit       may not fit small: 13.0 MiB reserved of 10.0 MiB, 3.00 MiB too much; live bytes alone would leave 2.00 MiB\n");
}

TEST_CASE("text: memory on cores is compared core by core") {
  memprof::profile profile = training();
  memprof::space_profile& space = profile.spaces[0];
  profile.device = "chip";
  space.name = "l1";
  space.capacity = 3 * mib / 2;
  space.capacity_is_per_core = true;
  const auto shown = [&](const std::string& heading) { return answer(memprof::to_text(profile, {.columns = 200}), heading); };
  CHECK(shown("Fit") == "Fit       per-core fit unknown: each core has 1.50 MiB, but no block was recorded on cores\n");
  space.cores.peaks = {mib, mib / 4, 5 * mib / 4, "3-1"};
  space.cores.ranges = {{"[0-0 - 7-7]", space.cores.peaks}, {"[0-0 - 1-1]", {0, mib / 4, mib / 4, "0-0"}}};
  CHECK(shown("Fit") == "Fit       fits chip: 256 KiB of 1.50 MiB free at the peak on core 3-1\n");
  CHECK(shown("Peak").starts_with("Peak      8.00 MiB (8,388,608 B) of l1 across all cores at 52.1 ms in"));
  CHECK(shown("Cores") ==
        "Cores     1.25 MiB (1,310,720 B) at most on one core, 3-1; circular buffers at most 1.00 MiB, buffers 256 KiB\n");
  CHECK(answer(memprof::to_text(profile, {.core_ranges = 1}), "Cores")
            .ends_with("             Total  Circular buffers  Buffers  Cores\n"
                       "          1.25 MiB          1.00 MiB  256 KiB  [0-0 - 7-7]\n"
                       "          1 further rectangle\n"));
}

TEST_CASE("text: what an allocator reserved, its streams, and what the device had no memory for") {
  memprof::profile profile = training();
  memprof::space_profile& space = profile.spaces[0];
  space.reserved.peak = 20 * mib;
  space.reserved.current = 6 * mib;
  space.streams = {{"0xab0", "0:1", 7 * mib, mib, 12, 40 * mib, 20 * mib}, {"default", "unknown", mib, 0, 1, 0, 0}};
  space.out_of_memory = {{80 * mib, 3 * mib, 8 * mib, 20 * mib, "gpt/head", 1, 2'000'000'000, 1}};
  space.further_out_of_memory = {5, 5 * mib};
  const std::string text = memprof::to_text(profile, {.columns = 300});
  CHECK(answer(text, "Reserved") ==
        "Reserved  20.0 MiB (20,971,520 B) by the allocator, 12.0 MiB more than was ever live; 6.00 MiB at the end\n");
  CHECK(answer(text, "Active").empty());  // no more than was live
  space.active.peak = 9 * mib;
  space.active.current = mib + 512;  // the streams have 1 MiB live
  CHECK(
      answer(memprof::to_text(profile, {.columns = 300}), "Active") ==
      "Active    9.00 MiB (9,437,184 B) with freed blocks that streams still used, 1.00 MiB more than was ever live; 512 B freed "
      "but in use at the end\n");
  CHECK(answer(text, "Streams") ==
        "Streams   2 streams and pools; the most, 40.0 MiB reserved and 7.00 MiB live, on stream 0xab0, private pool 0:1\n");
  CHECK(answer(text, "Failed") ==
        "Failed    out of memory requesting 80.0 MiB at 2.00 s in FORWARD_PASS, step 1 of 3, operation gpt/head; 3.00 MiB free "
        "on the device, 20.0 MiB reserved, 8.00 MiB of it live; 5 more failures\n");
  CHECK(answer(memprof::to_text(profile, {.columns = 110, .streams = 1}), "Streams") ==
        "Streams   Reserved peak  at the end  Live peak  at the end  Allocations  Stream and pool\n"
        "               40.0 MiB    20.0 MiB   7.00 MiB    1.00 MiB           12  stream 0xab0, private pool 0:1\n"
        "          1 further stream and pool\n");
  space.streams.resize(1);
  space.streams[0].pool.clear();
  CHECK(answer(memprof::to_text(profile), "Streams").empty());
}

TEST_CASE("text: what is wrong with the numbers is said, a line each with its count") {
  memprof::profile profile = training();
  const auto shown = [&](memprof::text_options options = {}) {
    options.columns = 200;
    return answer(memprof::to_text(profile, options), "Accuracy");
  };
  profile.spaces[0].anomalies.unmatched_frees = {2, 3 * mib};
  profile.anomalies.unbalanced_scopes = 1;
  CHECK(shown() ==
        "Accuracy  exact: 1,234 events, none lost; profiler 1.50 MiB, 12 ns an event\n"
        "          2 unmatched frees (3.00 MiB): of untracked blocks, not counted as deallocations\n"
        "          1 operation without a begin or end\n");
  profile.spaces.push_back(profile.spaces[0]);
  profile.spaces.back().name = "cpu";
  CHECK(contains(shown(), "          4 unmatched frees (6.00 MiB) in cuda:0 and 1 other space: of"));
  profile.facts = {
      memprof::extend::to_table<memprof::approximated_operation>({{"my::op", "no rule", 3, 2 * mib}, {"b", "none", 1, mib}}),
      memprof::extend::to_table<memprof::unknown_read>({{"aten::item", "early stop", 3, 0}, {"", "", 1, 0}})};
  CHECK(contains(shown(), "Accuracy  estimated in part; 1,234 events, none lost;"));
  CHECK(contains(shown(), "          4 calls of 2 operators estimated (3.00 MiB), most by my::op (no rule)\n"));
  CHECK(
      contains(shown(),
               "          4 reads of numbers unknown to the simulation (aten::item in early stop and others): nothing changes if "
               "they are only printed; whether they decide anything is not seen\n"));
  profile.facts.push_back(memprof::extend::to_table<memprof::missing_source>({{"CUDA", "there is no CUDA device"}}));
  CHECK(contains(shown(), "Accuracy  incomplete: exact for what was captured, 1,234 events;"));
  CHECK(contains(shown(), "          CUDA not captured: there is no CUDA device\n"));
  profile.exact = false;
  profile.anomalies.dropped_events = 12;
  profile.anomalies.reentrant_events = 1;
  profile.anomalies.missing_events = 7;
  profile.anomalies.rejected_events = 2;
  profile.spaces[0].anomalies.untracked_allocations = {1, mib};
  profile.facts.push_back(memprof::extend::to_table<memprof::unrecorded_module>({{"/opt/plugins/attention.so"}}));
  const std::string all = shown({.all_faults = true});
  CHECK(all.starts_with("Accuracy  not exact: totals may be too small, live bytes and peaks too small or too large;"));
  for (const char* const line :
       {"12 events dropped from full rings (overflow::drop)", "1 event lost in signal handlers",
        "7 or more events missing from the trace", "2 events rejected", "1 allocation (1.00 MiB) not tracked",
        "1 library not recorded (/opt/plugins/attention.so): link the executable with -rdynamic"}) {
    CHECK(contains(all, line));
  }
  CHECK(contains(shown(), " more kinds of anomalies\n"));
  profile.anomalies.missing_events = 1;
  CHECK(contains(shown({.all_faults = true}), "1 or more events missing from the trace"));
  memprof::profile endless = training();
  endless.anomalies.other_segments = 1;
  endless.anomalies.other_operations = 1200;
  endless.anomalies.other_names = 7;
  CHECK(contains(
      memprof::to_text(endless, {.columns = 200}),
      "          1 segment without a separate row: give the phases of each step the same names\n"
      "          1,200 operations without a separate row: keep growing numbers out of their names, or set a higher limit\n"
      "          7 events with names beyond the limit of 65,536 per process: keep growing numbers out of names\n"));
  memprof::profile merged = training();
  merged.exact = false;
  merged.spaces.emplace_back().stands_for_others = true;
  CHECK(
      contains(memprof::to_text(merged, {.columns = 200}),
               "          memory spaces beyond the 254th share one, where blocks at equal addresses count as one: give blocks of "
               "the same kind one space\n"));
  memprof::profile deep = training();
  deep.anomalies.too_deep_scopes = 3;
  CHECK(contains(memprof::to_text(deep, {.columns = 200}), "Accuracy  exact in total, not by operation"));
  memprof::profile unexplained = training();
  unexplained.exact = false;
  CHECK(contains(memprof::to_text(unexplained, {.columns = 200}), "too large; the profile does not say why;"));
}

TEST_CASE("text: a number that is read changes nothing, a truth value or an assumed size is named, and its effect") {
  memprof::profile profile = training();
  const auto shown = [&] { return answer(memprof::to_text(profile, {.columns = 300}), "Accuracy"); };
  profile.facts = {memprof::extend::to_table<memprof::unknown_read>({{"aten::item", "log", 3, 0}})};
  CHECK(shown().starts_with("Accuracy  exact: 1,234 events, none lost;"));
  CHECK(contains(
      shown(),
      "          3 reads of numbers unknown to the simulation (aten::item in log): nothing changes if they are only printed; "
      "whether they decide anything is not seen\n"));

  profile.facts = {
      memprof::extend::to_table<memprof::unknown_read>({{"aten::item", "log", 3, 0}, {"aten::is_nonzero", "scaler", 1, 1}})};
  profile.exact = false;
  CHECK(shown().starts_with(
      "Accuracy  not exact: aten::is_nonzero in scaler read what the simulation had to assume; how far the numbers "
      "are off is unknown; 1,234 events, none lost;"));
  CHECK(contains(
      shown(),
      "          1 read of a truth value or integer unknown to the simulation (aten::is_nonzero in scaler): the program may take "
      "another path\n"));

  // 1 of 4 results in 1 MiB: three more are 3 MiB.
  profile.facts.push_back(memprof::extend::to_table<memprof::assumed_size>(
      {{"aten::unique_dim", "", "distinct", 1, 5, 0, mib / 2}, {"aten::nonzero", "routing", "a mask", 2, 1000, 4000, mib}}));
  CHECK(shown().starts_with(
      "Accuracy  not exact: aten::nonzero in routing assumed 1,000 of at most 4,000 results, at most 1.00 MiB too "
      "many or 3.00 MiB too few; 1,234 events, none lost;"));
  CHECK(contains(
      shown(),
      "          3 calls with sizes that depend on unknown data (1.50 MiB), most by aten::nonzero in routing: a mask\n"));
  // 3 numbers of 8 bytes, drawn late.
  for (const memprof::assumed_size& row :
       {memprof::assumed_size{"aten::nonzero", "", "drawn", 1, 3, 0, 24}, {"aten::nonzero", "", "drawn", 1, 0, 9, 24}}) {
    memprof::profile unbounded = training();
    unbounded.exact = false;
    unbounded.facts = {memprof::extend::to_table<memprof::assumed_size>({row})};
    CHECK(contains(memprof::to_text(unbounded, {.columns = 300}),
                   "results, at most 24 B too many or too few by an unknown number; 1,234 events"));
  }
  profile.anomalies.dropped_events = 1;
  CHECK(shown().starts_with("Accuracy  not exact: totals may be too small,"));

  memprof::profile imported = training();
  imported.exact = false;
  imported.provenance.assumed = true;
  CHECK(contains(memprof::to_text(imported, {.columns = 300}), "not exact: rests on what the simulation assumed; 1,234 events"));
}

TEST_CASE("text: what a trace file lacks is said") {
  memprof::profile profile = training();
  profile.facts = {memprof::extend::to_table<memprof::incomplete_trace_file>(
      {{"run.memtrace", "its disk was too slow", 1234}, {"b", "no room", 0}})};
  const std::string all = memprof::to_text(profile, {.all_faults = true});
  CHECK(contains(all, "trace file run.memtrace incomplete: its disk was too slow, 1,234 events missing\n"));
  CHECK(contains(all, "trace file b incomplete: no room\n"));
}

TEST_CASE("text: of a simulated device whose allocator was modelled, the parts that are predicted have a line") {
  memprof::profile profile = training();
  profile.spaces[0].capacity = std::int64_t{143'156} * mib;
  profile.facts = {
      memprof::extend::to_table<memprof::device_context>({{"cuda:0", 767 * mib, 619 * mib, "cudaMemGetInfo on an H200"}})};
  profile.spaces[0].reserved.peak = 20 * mib;
  const auto shown = [&] { return answer(memprof::to_text(profile, {.columns = 300}), "Device"); };
  CHECK(shown().empty());  // a real one
  profile.mode = memprof::run_mode::no_dispatch;
  CHECK(shown() ==
        "Device    cuda:0 787 MiB predicted of 140 GiB: 8.00 MiB recorded, 12.0 MiB more reserved, 767 MiB CUDA context (619 MiB "
        "to 767 MiB: cudaMemGetInfo on an H200)\n");
  profile.spaces[0].reserved.peak = 0;
  CHECK(shown().empty());
  profile.spaces[0].reserved.peak = 20 * mib;
  profile.facts.clear();  // another card
  CHECK(shown().empty());
}

TEST_CASE("text: tables of facts have a line") {
  memprof::profile profile = training();
  profile.facts = {memprof::extend::to_table<memprof::pytorch_operation>(
      {{"aten::addmm", "[8], [4, 2]", 16, 85'250'000, 0, 3 * mib, 0}, {"aten::relu", "", 1, 1'000, 0, -mib, mib}})};
  CHECK(answer(memprof::to_text(profile), "Facts") ==
        "Facts     pytorch_operations (2 rows); memprof show --facts NAME prints a table\n");
}

TEST_CASE("text: several spaces: the largest in full, a line for each other, and the idle ones not at all") {
  memprof::profile profile = training();
  memprof::space_profile cpu;
  cpu.name = "cpu";
  cpu.cumulative_peak = 9 * mib;
  cpu.cumulative_current = mib;
  cpu.peak_time_ns = 5'000;
  cpu.peak_segment = 1;
  cpu.segments.resize(profile.segments.size());
  profile.spaces.insert(profile.spaces.begin(), cpu);
  profile.spaces.emplace_back().name = "idle";
  const std::string text = memprof::to_text(profile);
  CHECK(contains(text, "Peak      9.00 MiB (9,437,184 B) of cpu at 5.00 us in FORWARD_PASS, step 1 of 3, outside every"));
  CHECK(answer(text, "Spaces") == "Spaces    cuda:0  peak 8.00 MiB  end 2.00 MiB    52.1 ms in BACKWARD_PASS, step 2 of 3\n");
  CHECK(contains(memprof::to_text(profile, {.primary_space = "cuda:0"}), "Peak      8.00 MiB (8,388,608 B) of cuda:0"));
  CHECK(contains(memprof::to_text(profile, {.primary_space = "idle"}), "Peak      0 B of idle\n"));
  CHECK_THROWS_AS(memprof::to_text(profile, {.primary_space = "l1"}), memprof::error);
  // What is full comes before what is merely large.
  profile.spaces[1].capacity = gib;
  profile.spaces[1].first_shortfall.requested = 1;
  CHECK(contains(memprof::to_text(profile), "Peak      8.00 MiB (8,388,608 B) of cuda:0"));
  const std::string all = memprof::to_text(profile, {.all_spaces = true});
  CHECK(contains(all, "of cuda:0 at"));
  CHECK(contains(all, "of cpu at"));
  CHECK(contains(all, "\n\nSegments in cpu  Count "));
}

TEST_CASE("text: of several spaces, each that grows is named, the fastest first") {
  CHECK(answer(memprof::to_text(training_with_leaks({{"cpu", mib}})), "Growth") ==
        "Growth    0 B per step in cuda:0: 100 MiB live after each STEP (20)\n"
        "          +1.00 MiB per step in cpu; live after STEP: first 1.00 MiB, last 20.0 MiB\n");
  CHECK(answer(memprof::to_text(training_with_leaks({{"cpu", mib}}), {.primary_space = "cpu"}), "Growth")
            .starts_with("Growth    +1.00 MiB per step in cpu; live after STEP: first 1.00 MiB, last 20.0 MiB"));
  // What shrinks, what stays and what has no clear trend is not news.
  memprof::profile profile = training_with_leaks({{"a", 2 * kib}, {"b", 4 * kib}, {"c", kib}, {"d", 3 * kib}, {"e", kib / 2}});
  profile.spaces.emplace_back(profile.spaces[1]).name = "uneven";
  for (std::size_t step = 0; step < 20; ++step) {
    profile.spaces.back().segments[step].cumulative_current = step % 2 == 0 ? 900 : 1000 + static_cast<std::int64_t>(step);
  }
  CHECK(answer(memprof::to_text(profile), "Growth") ==
        "Growth    0 B per step in cuda:0: 100 MiB live after each STEP (20)\n"
        "          +4.00 KiB per step in b; live after STEP: first 4.00 KiB, last 80.0 KiB\n"
        "          +3.00 KiB per step in d; live after STEP: first 3.00 KiB, last 60.0 KiB\n"
        "          +2.00 KiB per step in a; live after STEP: first 2.00 KiB, last 40.0 KiB; 2 more grow\n");
  const std::string all = memprof::to_text(training_with_leaks({{"cpu", mib}}), {.all_spaces = true});
  CHECK(contains(all, "\nGrowth    0 B per step in cuda:0: 100 MiB live after each STEP (20)\nAt end"));
  CHECK(contains(all, "\nGrowth    +1.00 MiB per step in cpu; live after STEP: first 1.00 MiB"));
}

TEST_CASE("text: the state of the run is said if it is not the usual one") {
  memprof::profile profile = training();
  profile.complete = false;
  profile.mode = memprof::run_mode::no_dispatch;
  profile.process.rank = 1;
  profile.process.world_size = 4;
  const std::string text = memprof::to_text(profile, {.columns = 200});
  CHECK(
      text.starts_with("memprof   train --steps 3, rank 1 of 4: 3 steps in 8 segments, 1.50 s; no_dispatch: real sizes and "
                       "lifetimes, nothing allocated; capture not ended, numbers so far\n"));
  CHECK(contains(text, "\nNow       2.00 MiB"));
}

TEST_CASE("text: without an allocation, a segment or an operation it is short") {
  CHECK(memprof::to_text(memprof::profile{}) ==
        "memprof   0 segments, 0 ns; capture not ended, numbers so far\n"
        "No allocations recorded.\n"
        "Accuracy  not exact: totals may be too small, live bytes and peaks too small or too large; the\n"
        "          profile does not say why\n");
  memprof::profile profile;
  profile.exact = true;
  profile.complete = true;
  profile.facts = {memprof::extend::to_table<memprof::missing_source>({{"CUDA", "there is no CUDA device"}})};
  CHECK(contains(memprof::to_text(profile), "CUDA not captured: there is no CUDA device\n"));
  // A reason is a sentence: it is wrapped, not shortened in the middle as a name is.
  profile.facts = {memprof::extend::to_table<memprof::missing_source>(
      {{"memory past malloc", "8.20 MiB of 13.0 MiB resident, such as mappings, which --mmap records, static data or stacks"}})};
  CHECK(contains(memprof::to_text(profile),
                 "          memory past malloc not captured: 8.20 MiB of 13.0 MiB resident, such as mappings, which\n"
                 "          --mmap records, static data or stacks\n"));
  profile = training();
  profile.segments.clear();
  profile.operations.clear();
  profile.spaces[0].segments.clear();
  profile.spaces[0].peak_segment = -1;
  profile.spaces[0].peak_operation.clear();
  const std::string text = memprof::to_text(profile);
  CHECK(contains(text, "Peak      8.00 MiB (8,388,608 B) of cuda:0 at 52.1 ms\n"));
  CHECK(!contains(text, "Segments"));
  CHECK(memprof::to_text({}, {.format = memprof::text_format::tracker}) == "WARNING: No traces captured\n");
}

TEST_CASE("text: colours are only where they are asked for, and change nothing else") {
  memprof::profile profile = training();
  profile.exact = false;
  const std::string plain = memprof::to_text(profile);
  CHECK(!contains(plain, "\x1b"));
  std::string colored = memprof::to_text(profile, {.is_colored = true});
  CHECK(contains(colored, "\x1b[1;31mnot exact\x1b[0m"));
  for (std::size_t begin = colored.find('\x1b'); begin != std::string::npos; begin = colored.find('\x1b')) {
    colored.erase(begin, colored.find('m', begin) + 1 - begin);
  }
  CHECK(colored == plain);
}

TEST_CASE("text: numbers have a point whatever the locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const char* const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
  const char* set = nullptr;
  for (const char* const name : names) {
    if (set == nullptr) set = std::setlocale(LC_ALL, name);
  }
  const std::string text = memprof::to_text(training());
  std::setlocale(LC_ALL, before.c_str());
  if (set == nullptr) SKIP("no locale with a decimal comma is installed");
  CHECK(contains(text, "8.00 MiB (8,388,608 B)"));
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

TEST_CASE("text: what the process held is one short line, and more where something is unexplained") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  memprof::process_memory reading;
  reading.moment = "most_resident";
  reading.resident_bytes = 2048 * mib;
  reading.anonymous_bytes = 2000 * mib;
  reading.heap_bytes = 1950 * mib;
  reading.free_heap_bytes = 10 * mib;
  reading.heap_before_bytes = 20 * mib;
  reading.recorded_bytes = 1843 * mib;
  reading.unrecorded_heap_bytes = 102 * mib;  // 5 % of 2 GiB are 102.4 MiB
  const auto text = [&] {
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
    return to_text(profile);
  };
  // 2048 - 1843 - 102 = 103
  const std::string quiet = text();
  CHECK(quiet.find("\nProcess   2.00 GiB resident: 1.80 GiB recorded, 102 MiB heap not recorded, 103 MiB other\n") !=
        std::string::npos);
  CHECK(quiet.find("Accuracy  exact") != std::string::npos);
  CHECK(quiet.find("new_delete") == std::string::npos);
  reading.container_limit_bytes = 4096 * mib;
  CHECK(text().find("\nProcess   2.00 GiB resident of 4.00 GiB that the container may take: 1.80 GiB recorded, 102 MiB") !=
        std::string::npos);
  reading.container_limit_bytes = -1;
  reading.recorded_bytes = 1000 * mib;
  reading.free_heap_bytes = 853 * mib;  // more than 5 %, but explained
  CHECK(text().find("\nProcess   2.00 GiB resident: 0.977 GiB recorded, 102 MiB heap not recorded, 946 MiB other\n") !=
        std::string::npos);
  reading.unrecorded_heap_bytes = -1;
  reading.free_heap_bytes = reading.heap_before_bytes = reading.heap_bytes = -1;
  reading.recorded_bytes = 1900 * mib;
  CHECK(text().find("\nProcess   2.00 GiB resident: 1.86 GiB recorded, 148 MiB other\n") != std::string::npos);
  profile.spaces.clear();
  CHECK(text().find("\nProcess   2.00 GiB resident: ") != std::string::npos);
}

TEST_CASE("text: of a killed run, a process that was read before its last segment is dated") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  profile.segments.back().begin_ns = 1'400'000'000;
  memprof::process_memory reading;
  reading.moment = "most_resident";
  reading.resident_bytes = 2048 * mib;
  reading.recorded_bytes = 1900 * mib;
  reading.time_ns = 52'100'000;
  const auto shown = [&] {
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
    return answer(memprof::to_text(profile), "Process");
  };
  CHECK(shown() == "Process   2.00 GiB resident: 1.86 GiB recorded, 148 MiB other\n");
  profile.complete = false;
  CHECK(shown() == "Process   2.00 GiB resident: 1.86 GiB recorded, 148 MiB other; read at 52.1 ms\n");
  reading.time_ns = 1'450'000'000;
  CHECK(shown() == "Process   2.00 GiB resident: 1.86 GiB recorded, 148 MiB other\n");
}

TEST_CASE("text: heap that no source recorded is a line with its parts, and ends \"exact\"") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  const auto with = [&](memprof::process_memory reading) {
    reading.moment = "most_resident";
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({std::move(reading)})};
    return to_text(profile);
  };
  memprof::process_memory reading;
  reading.resident_bytes = 2048 * mib;
  reading.anonymous_bytes = 1900 * mib;
  reading.heap_bytes = 1800 * mib;
  reading.free_heap_bytes = 0;
  reading.heap_before_bytes = 0;
  reading.recorded_bytes = 1229 * mib;
  reading.unrecorded_heap_bytes = 410 * mib;
  reading.records_operator_new = 1;
  const std::string text = with(reading);
  // 2048 - 1229 - 410 = 409, of which 1900 - 1229 - 410 = 261 belong to no file.
  CHECK(text.find("Process   2.00 GiB resident: 1.20 GiB recorded, 410 MiB heap not recorded (malloc), 261 MiB other\n"
                  "          mappings, 148 MiB code and files\n") != std::string::npos);
  CHECK(text.find("Accuracy  incomplete: exact for what was captured") != std::string::npos);
  CHECK(text.find("          410 MiB of heap not recorded: memory from malloc, calloc or posix_memalign, as in C\n"
                  "          libraries: include <memprof/backend/malloc.hpp> in place of new_delete.hpp\n") != std::string::npos);
  CHECK(text.find("Facts") == std::string::npos);

  reading.records_operator_new = 0;
  CHECK(with(reading).find("add #include <memprof/backend/malloc.hpp>") != std::string::npos);
  memprof::process_memory last = reading;
  last.moment = "last";
  last.records_operator_new = 1;
  memprof::process_memory most = reading;
  most.moment = "most_resident";
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({most, last})};  // a later reading knows more
  CHECK(to_text(profile).find("add #include") == std::string::npos);

  reading.unrecorded_heap_bytes = 102 * mib;  // 5 % of 2 GiB are 102.4 MiB
  CHECK(with(reading).find("incomplete") == std::string::npos);
  reading.unrecorded_heap_bytes = 103 * mib;
  CHECK(with(reading).find("incomplete") != std::string::npos);
  profile.mode = memprof::run_mode::no_dispatch;  // the process does not hold what it records
  CHECK(with(reading).find("Process") == std::string::npos);
  profile.mode = memprof::run_mode::normal;
  profile.spaces[0].name = "cuda:0";
  CHECK(with(reading).find("Process") == std::string::npos);
  profile.spaces[0].name = "cpu";
  reading.resident_bytes = 4 * mib;
  reading.unrecorded_heap_bytes = mib - 1;  // what any program has
  CHECK(with(reading).find("incomplete") == std::string::npos);
}

TEST_CASE("text: without the numbers of malloc, memory that belongs to nobody is shown, and most of the process is incomplete") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  memprof::process_memory reading;
  reading.moment = "most_resident";
  reading.resident_bytes = 100 * mib;
  reading.anonymous_bytes = 90 * mib;
  reading.recorded_bytes = 30 * mib;
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
  const std::string text = to_text(profile, {.columns = 200});
  CHECK(text.find("Process   100 MiB resident: 30.0 MiB recorded, 60.0 MiB not recorded (another malloc, or mmap), 10.0 MiB "
                  "code and files\n") != std::string::npos);
  CHECK(text.find("Accuracy  incomplete: exact for what was captured") != std::string::npos);
  CHECK(text.find("          60.0 MiB not recorded: add #include <memprof/backend/malloc.hpp>") != std::string::npos);
  const auto is_incomplete = [&](const memprof::vector<memprof::process_memory>& readings) {
    profile.facts = {memprof::extend::to_table<memprof::process_memory>(readings)};
    return to_text(profile).find("incomplete") != std::string::npos;
  };
  reading.records_operator_new = 1;
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
  CHECK(to_text(profile, {.columns = 200}).find("60.0 MiB not recorded: memory from malloc or mmap, as in C libraries") !=
        std::string::npos);
  memprof::process_memory first = reading;
  first.moment = "first";
  first.anonymous_bytes = 40 * mib;  // it grew by 50 MiB, less than twice what was recorded
  CHECK_FALSE(is_incomplete({first, reading}));
  first.anonymous_bytes = 20 * mib;
  CHECK(is_incomplete({first, reading}));
  memprof::process_memory most = reading;
  most.moment = "most_recorded";
  most.recorded_bytes = 36 * mib;  // which malloc may still keep
  CHECK_FALSE(is_incomplete({first, reading, most}));
  memprof::process_memory last = reading;
  last.moment = "last";
  last.unrecorded_heap_bytes = 0;  // malloc did tell in the end
  CHECK_FALSE(is_incomplete({first, reading, last}));
}

TEST_CASE("text: where more was allocated than is resident, its parts are upper bounds, and none of them is in files") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  memprof::process_memory reading;
  reading.moment = "most_resident";
  reading.resident_bytes = 36 * mib;
  reading.anonymous_bytes = 33 * mib;
  reading.recorded_bytes = 1000 * mib;
  reading.heap_bytes = 1032 * mib;
  reading.free_heap_bytes = 0;
  reading.heap_before_bytes = 0;
  reading.unrecorded_heap_bytes = 32 * mib;
  reading.records_operator_new = 1;
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
  CHECK(to_text(profile, {.columns = 200})
            .find("Process   36.0 MiB resident: up to 33.0 MiB recorded, up to 32.0 MiB heap not recorded (malloc), 3.00 MiB "
                  "code, files and stacks; a further 999 MiB of blocks not resident\n") != std::string::npos);
  const memprof::process_account account = memprof::detail::account_of(reading);
  CHECK(account.files == 3 * mib);
  CHECK(account.recorded + account.unrecorded_heap == 33 * mib);
  CHECK_FALSE(account.is_split_known);
  // What was there before may be that which is resident.
  reading.recorded_bytes = 33 * mib;
  reading.unrecorded_heap_bytes = 0;
  CHECK(memprof::detail::account_of(reading).is_split_known);
  reading.heap_before_bytes = 10 * mib;
  CHECK_FALSE(memprof::detail::account_of(reading).is_split_known);
}

TEST_CASE("text: heap that was not recorded is named where the resident bytes are unknown") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  memprof::process_memory first;
  first.moment = "most_resident";
  first.resident_bytes = first.anonymous_bytes = 4 * mib;
  first.unrecorded_heap_bytes = 0;
  memprof::process_memory reading;
  reading.moment = "most_unrecorded";
  reading.heap_bytes = 400 * mib;
  reading.recorded_bytes = 1000;
  reading.unrecorded_heap_bytes = 30 * mib;
  reading.records_operator_new = 1;
  const auto text = [&] {
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({first, reading})};
    return to_text(profile);
  };
  CHECK(text().find("Process   resident unknown: 1000 B recorded, 30.0 MiB heap not recorded (malloc)\n") != std::string::npos);
  CHECK(text().find("30.0 MiB of heap not recorded: memory from malloc") != std::string::npos);
  reading.unrecorded_heap_bytes = 20 * mib;  // 5 % of the heap
  CHECK(text().find("Process   4.00 MiB resident: 0 B recorded, 0 B heap not recorded, 4.00 MiB other\n") != std::string::npos);
}

TEST_CASE("text: resident bytes that were read when the capture began alone do not pass for the run's") {
  memprof::profile profile = training();
  profile.spaces[0].name = "cpu";
  memprof::process_memory first;
  first.moment = "first";
  first.time_ns = 1000;
  first.resident_bytes = first.anonymous_bytes = 4 * mib;
  first.unrecorded_heap_bytes = 0;
  memprof::process_memory most = first;
  most.moment = "most_resident";
  memprof::process_memory last = first;
  last.moment = "last";
  const auto text = [&] {
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({first, last, most})};
    return to_text(profile);
  };
  constexpr std::string_view begin_alone = "Process   4.00 MiB resident when the capture began, not read later\n";
  CHECK(text().find(begin_alone) != std::string::npos);  // the process left by _exit
  last.time_ns = 2000;
  last.resident_bytes = last.anonymous_bytes = -1;
  CHECK(text().find(begin_alone) != std::string::npos);  // it has closed the file
  last.resident_bytes = last.anonymous_bytes = 3 * mib;
  CHECK(text().find("Process   4.00 MiB resident: 0 B recorded, 0 B heap not recorded, 4.00 MiB other\n") != std::string::npos);
}

TEST_CASE("text: \"No allocations recorded\" names the cause and the line to add") {
  memprof::profile profile;
  profile.complete = true;
  memprof::process_memory reading;
  reading.moment = "last";
  reading.resident_bytes = 4 * mib;
  const auto text_with = [&](std::int64_t records_operator_new) {
    reading.records_operator_new = records_operator_new;
    profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
    return to_text(profile);
  };
  CHECK(text_with(0).find("No allocations recorded.\n"
                          "Nothing in this program records its allocations. Add to one .cpp file, for operator new:\n"
                          "  #include <memprof/backend/new_delete.hpp>\n"
                          "or allocate from a memprof::memory_resource.\n") != std::string::npos);
  CHECK(text_with(1).find("No allocations recorded.\n"
                          "operator new is recorded, but was not called during the capture:\n") != std::string::npos);
  reading.moment = "most_resident";
  reading.unrecorded_heap_bytes = 2 * mib;
  CHECK(
      text_with(1).find("No allocations recorded.\n"
                        "operator new is recorded, but was not called during the capture; the memory below is from malloc.\n") !=
      std::string::npos);
  CHECK(text_with(1).find("hold the guard") == std::string::npos);
}

TEST_CASE("text: the advice for a Python process names no header") {
  memprof::profile profile;
  profile.complete = true;
  profile.process.command_line = "/usr/bin/python3.11 -m memprof.run train.py";
  memprof::process_memory reading;
  reading.moment = "most_unrecorded";
  reading.resident_bytes = reading.anonymous_bytes = reading.heap_bytes = 400 * mib;
  reading.unrecorded_heap_bytes = 300 * mib;
  profile.facts = {memprof::extend::to_table<memprof::process_memory>({reading})};
  const std::string empty = to_text(profile);
  CHECK(empty.find("No allocations recorded.\nNo tensor of PyTorch") != std::string::npos);
  memprof::profile with_blocks = training();
  with_blocks.spaces[0].name = "cpu";
  with_blocks.process.command_line = profile.process.command_line;
  with_blocks.facts = profile.facts;
  const std::string incomplete = to_text(with_blocks);
  CHECK(incomplete.find("300 MiB of heap not recorded: memory of the interpreter") != std::string::npos);
  for (const std::string& text : {empty, incomplete}) {
    CHECK(text.find("python3 SCRIPT`") != std::string::npos);
    CHECK(text.find("#include") == std::string::npos);
  }
  with_blocks.process.command_line = "./python_like/trainer";
  CHECK(to_text(with_blocks).find("#include <memprof/backend/malloc.hpp>") != std::string::npos);
}

}  // namespace memprof_tests::report_text
