#include <memprof/detail/error.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/gzip.hpp>
#include <memprof/toolkit/page/address_regions.hpp>
#include <memprof/toolkit/page/base64.hpp>
#include <memprof/toolkit/page/frame_invocations.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <property/random_sequence.hpp>
#include <scratch_folder.hpp>
#include <toolkit/page/brute_force.hpp>
#include <toolkit/page/page_reader.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests::report_html_page {

namespace {

using memprof::category;
using memprof::trace;
using memprof::extend::trace_writer;
using memprof_tests::page_check;
using memprof_tests::page_column;
using memprof_tests::page_reader;
using memprof_tests::page_table;
using memprof_tests::scratch_folder;

[[nodiscard]] page_reader page_of(const trace& source, const memprof::html_options& options = {}) {
  const scratch_folder folder;
  memprof::write_html(source, folder / "page.html", options);
  return page_reader{folder / "page.html"};
}

[[nodiscard]] page_reader page_of(const memprof::profile& source) {
  const scratch_folder folder;
  memprof::write_html(source, folder / "page.html");
  return page_reader{folder / "page.html"};
}

/// A run of so many steps of three phases: each allocates `blocks` in `layers` operations and frees them again. Every tenth step
/// holds one more.
void train(trace_writer& writer, std::size_t steps, std::size_t layers = 3, std::size_t blocks = 2) {
  const memprof::extend::space_id space = writer.space("cuda:0", 1 << 30);
  std::int64_t now = 0;
  writer.allocate(space, std::uint64_t{0x7000}, 4096, category::parameter);
  writer.end_segment("MODEL_CREATION");
  for (std::size_t step = 0; step < steps; ++step) {
    const std::uint64_t first = 0x10000;
    std::uint64_t next = first;
    const auto forward = writer.begin_operation("forward");
    for (std::size_t layer = 0; layer < layers + (step % 10 == 9 ? 1 : 0); ++layer) {
      writer.at(now += 100);
      const auto operation = writer.begin_operation("layer " + std::to_string(layer), category::activation);
      for (std::size_t block = 0; block < blocks; ++block) {
        writer.allocate(space, next, 1000 + 100 * layer + block);
        next += 0x1000;
      }
      writer.at(now += 50);
      writer.end_operation(operation);
    }
    writer.end_operation(forward);
    writer.end_segment("FORWARD_PASS");
    writer.at(now += 100);
    while (next != first) writer.deallocate(space, next -= 0x1000);
    writer.end_segment("BACKWARD_PASS");
    writer.at(now += 100);
    writer.end_segment("OPTIMIZER_STEP");
  }
  writer.finish();
}

TEST_CASE("write_html: what streams still use is there beside what is live", "[html]") {
  using memprof::extend::event_kind;
  trace source;
  trace_writer writer{source};  // event 0, and a thread_begin
  const std::uint8_t space = writer.space("cuda:0").value;
  const memprof::extend::label stream = writer.label_of("default\x1f");
  writer.put_event({0, 0x1000, 100, stream, event_kind::allocate_on_stream, space, 0});    // 2
  writer.put_event({0, 0x1000, 100, stream, event_kind::deallocate_on_stream, space, 1});  // 3
  writer.put_event({0, 0x2000, 30, stream, event_kind::allocate_on_stream, space, 0});     // 4
  writer.put_event({0, 0x1000, 100, 0, event_kind::complete_deallocation, space, 0});      // 5
  writer.finish();
  const page_reader page = page_of(source);
  const page_table& line = page.table("timeline", 0, 0);
  CHECK(line.at("begin_event") == page_column{0, 2, 3, 4, 5});
  CHECK(line.at("total") == page_column{0, 100, 0, 30, 30});
  CHECK(line.at("active") == page_column{0, 100, 100, 130, 130});
  CHECK(page.run["profile"]["spaces"][0]["active"]["peak"] == 130);
  page_check{page, source}.everything();
}

TEST_CASE("write_html: a small run is there to the event", "[html]") {
  trace source;
  trace_writer writer{source};  // event 0: the clock is read
  const memprof::extend::space_id space = writer.space("gpu");
  writer.at(10);
  const auto load = writer.begin_operation("load");                         // 1, and a thread_begin before it
  writer.allocate(space, std::uint64_t{0x1000}, 100, category::parameter);  // 3
  writer.at(20);
  writer.allocate(space, std::uint64_t{0x2000}, 50);  // 4
  writer.end_operation(load);                         // 5
  writer.at(30);
  writer.deallocate(space, std::uint64_t{0x2000});  // 6
  writer.annotate(std::uint64_t{0x1000},
                  {.name = "wte", .shape = "[5, 5]", .dtype = "float32", .category = category::input});  // 7
  writer.finish();                                                                                       // 8, 9, 10
  const page_reader page = page_of(source);

  REQUIRE(page.run["detail"]["events"] == 11);
  const page_table& line = page.table("timeline", 0, 0);
  CHECK(line.at("begin_event") == page_column{0, 3, 4, 6});
  CHECK(line.at("begin_ns") == page_column{0, 10, 20, 30});
  CHECK(line.at("event") == page_column{0, 3, 4, 6});
  CHECK(line.at("total") == page_column{0, 100, 150, 100});
  CHECK(line.at("blocks") == page_column{0, 1, 2, 1});
  CHECK(line.at("low") == page_column{0, 0, 100, 100});
  CHECK(!line.contains("reserved"));

  const auto& owners = page.run["detail"]["owners"];
  REQUIRE(owners.size() == 3);
  CHECK(owners[0] == nlohmann::ordered_json{{"operation", 0}, {"category", "parameter"}});
  CHECK(owners[1] == nlohmann::ordered_json{{"operation", 0}, {"category", "input"}});
  CHECK(owners[2] == nlohmann::ordered_json{{"operation", 0}, {"category", "other"}});
  // What the block is was known after it was there, and counts from its begin.
  const page_table& parts = page.table("parts", 0, 0);
  CHECK(parts.at("bucket") == page_column{1, 2, 3});
  CHECK(parts.at("owner") == page_column{1, 2, 2});
  CHECK(parts.at("bytes") == page_column{100, 50, 0});

  const page_table& blocks = page.table("blocks", 0, 0);
  CHECK(blocks.at("begin_event") == page_column{3, 4});
  CHECK(blocks.at("end_event") == page_column{11, 6});
  CHECK(blocks.at("end_ns") == page_column{30, 30});
  CHECK(blocks.at("stays") == page_column{1, 0});
  CHECK(blocks.at("offset") == page_column{0, 0x1000});
  CHECK(blocks.at("bytes") == page_column{100, 50});
  CHECK(page.run["detail"]["strings"] == nlohmann::ordered_json{"", "wte", "[5, 5]", "float32"});
  CHECK(blocks.at("name") == page_column{1, 0});
  CHECK(blocks.at("shape") == page_column{2, 0});
  CHECK(blocks.at("dtype") == page_column{3, 0});
  CHECK(page.run["detail"]["regions"][0][0]["address"] == "0x1000");

  const page_table& invocations = page.table("invocations");
  CHECK(invocations.at("operation") == page_column{1});
  CHECK(invocations.at("depth") == page_column{0});
  CHECK(invocations.at("begin_event") == page_column{2});
  CHECK(invocations.at("end_event") == page_column{5});
  CHECK(invocations.at("begin_ns") == page_column{10});
  CHECK(invocations.at("end_ns") == page_column{20});
  CHECK(page.table("deltas", 0, 0).at("delta") == page_column{150});
  CHECK(page.table("segments").at("begin_event") == page_column{0});
  CHECK(page.table("segments").at("end_event") == page_column{10});
  CHECK(page.table("steps").at("count").empty());
  page_check{page, source}.everything();
}

TEST_CASE("write_html: a page has the profile as write_json has it", "[html]") {
  trace source;
  trace_writer writer{source};
  train(writer, 5);
  const memprof::profile expected = memprof::profile_of(source);
  const page_reader of_trace = page_of(source);
  const page_reader of_profile = page_of(expected);
  CHECK(of_trace.run["profile"] == memprof::to_json(expected));
  CHECK(of_profile.run["profile"] == memprof::to_json(expected));
  CHECK(of_profile.run["detail"].is_null());
  CHECK(of_profile.run["kept_segments"].is_null());
  CHECK(of_profile.run["segment_count"] == expected.segments.size());
}

TEST_CASE("write_html: no maximum is lost in a long run", "[html]") {
  trace source;
  trace_writer writer{source};
  train(writer, 1500);
  const page_reader page = page_of(source);
  page_check check{page, source};
  REQUIRE(check.run().event_count > 30000);
  check.everything();
  CHECK(page.table("timeline", 0, 0).at("total").size() > 2000);
}

TEST_CASE("write_html: a long quiet stretch keeps its own buckets", "[html]") {
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  for (std::int64_t second = 1; second <= 600; ++second) {
    writer.at(second * 1'000'000'000);
    second % 2 == 1 ? writer.allocate(space, std::uint64_t{4096}, 100) : writer.deallocate(space, std::uint64_t{4096});
  }
  for (int pair = 0; pair < 10000; ++pair) {
    writer.at(600'000'000'000 + pair * 1000);
    writer.allocate(space, std::uint64_t{1} << 40, 7);
    writer.deallocate(space, std::uint64_t{1} << 40);
  }
  writer.finish();
  const page_reader page = page_of(source);
  page_check{page, source}.everything();
  // The rows of ten minutes are not those of the last 20 milliseconds.
  const page_column& times = page.table("timeline", 0, 0).at("begin_ns");
  CHECK(std::count_if(times.begin(), times.end(), [](std::int64_t ns) { return ns < 600'000'000'000; }) == 600);
}

TEST_CASE("write_html: steps have rows, patterns and frames of their own", "[html]") {
  trace source;
  trace_writer writer{source};
  train(writer, 1000);
  const page_reader page = page_of(source);
  const page_table& steps = page.table("steps");
  // MODEL_CREATION belongs to the first round; END_TRACE comes after the last.
  REQUIRE(steps.at("count") == page_column(1000, 1));
  CHECK(steps.at("begin_event").front() == 0);
  CHECK(steps.at("segment")[1] == 4);
  CHECK(steps.at("segment")[2] == 7);
  for (std::size_t row = 1; row < 1000; ++row) CHECK(steps.at("begin_event")[row] == steps.at("end_event")[row - 1]);
  const auto& patterns = page.run["detail"]["patterns"];
  CHECK(steps.at("end_event").back() == page.table("segments").at("begin_event").back());
  REQUIRE(patterns.size() == 3);  // the first step, every tenth and the others
  CHECK(patterns[0]["steps"] == 899);
  CHECK(patterns[1]["steps"] == 100);
  CHECK(patterns[0]["segments"].size() == 3);
  CHECK(patterns[0]["segments"][0]["name"] == "FORWARD_PASS");
  // Layers of 1000, 1100 and 1200 bytes, twice, the second of each a byte longer.
  CHECK(patterns[0]["segments"][0]["usage"][0]["segment_peak"] == 2 * (1000 + 1100 + 1200) + 3);
  CHECK(patterns[1]["segments"][0]["usage"][0]["segment_peak"] == 2 * (1000 + 1100 + 1200 + 1300) + 4);
  CHECK(patterns[0]["segments"][1]["usage"][0]["segment_change"] == -(2 * (1000 + 1100 + 1200) + 3));
  CHECK(patterns[0]["segments"][0]["begin"] == 0.0);
  CHECK(patterns[0]["segments"][2]["end"] == 1.0);
  const page_table& usage = page.table("step_usage", 0, 0);
  for (std::size_t row = 0; row < 1000; ++row) {
    CHECK(steps.at("pattern")[row] == (row == 0 ? 3 : row % 10 == 9 ? 2 : 1));
    CHECK(usage.at("peak")[row] == 4096 + (row % 10 == 9 ? 9204 : 6603));
    CHECK(usage.at("current")[row] == 4096);
  }
  // The step with the peak, the first, the last, and one of the pattern that is left.
  const auto& frames = page.run["detail"]["frames"];
  REQUIRE(frames.size() == 5);
  CHECK(frames[0]["step"] == -1);
  CHECK(frames[1]["step"] == 9);
  CHECK(frames[2]["step"] == 0);
  CHECK(frames[3]["step"] == 999);
  CHECK(frames[4]["step"] == 1);
  CHECK(page.table("timeline", 1, 0).at("total").size() == 1 + 2 * 8);
  page_check{page, source}.everything();
}

TEST_CASE("write_html: what is live at the end is a moment of its own, however long the run was", "[html]") {
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  writer.allocate(space, std::uint64_t{0x1000}, 100, category::parameter);
  for (int round = 0; round < 50'000; ++round) {
    writer.allocate(space, std::uint64_t{0x2000}, 1000, category::activation);
    writer.deallocate(space, std::uint64_t{0x2000});
  }
  writer.allocate(space, std::uint64_t{0x3000}, 7, category::gradient);
  writer.finish();
  const page_reader page = page_of(source);
  const page_table& line = page.table("timeline", 0, 0);
  CHECK(line.at("total").size() <= 4096);
  CHECK(line.at("total").front() == 1100);
  CHECK(line.at("total").back() == 107);
  CHECK(line.at("low").back() == 100);
  CHECK(line.at("blocks").back() == 2);
  CHECK(line.at("event").back() == line.at("begin_event").back());
  page_check{page, source}.everything();
}

TEST_CASE("write_html: steps share rows where they are too many", "[html]") {
  memprof::detail::step_survey steps{4};
  const auto segment = [&](memprof::extend::label name, std::uint64_t event, std::int64_t peak) {
    steps.end_segment(name, {event, event}, {event + 1, event + 1}, {{0, peak, peak, peak, 0, peak, 3}}, {event});
  };
  for (std::uint64_t step = 0; step < 11; ++step) {
    segment(1, 2 * step, static_cast<std::int64_t>(step));
    segment(2, 2 * step + 1, 1);
  }
  steps.finish();
  REQUIRE(steps.rows().size() == 3);
  CHECK(steps.step_count() == 11);
  CHECK(steps.rows()[0].steps == 4);
  CHECK(steps.rows()[1].steps == 4);
  CHECK(steps.rows()[2].steps == 3);
  CHECK(steps.rows()[1].first_segment == 8);
  CHECK(steps.rows()[2].begin.event == 16);
  CHECK(steps.rows()[2].end.event == 22);
  CHECK(steps.usage_of(0, 0).peak == 3);
  CHECK(steps.usage_of(1, 0).peak == 7);
  CHECK(steps.usage_of(2, 0).peak == 10);
  CHECK(steps.usage_of(2, 0).current == 3);
  CHECK(steps.highest(0).number == 10);
}

TEST_CASE("write_html: invocations are those that began and ended, by thread, with what they changed", "[html]") {
  memprof::property::random_numbers random{7};
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  using invocation = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;  // times, depth, delta
  std::map<invocation, int> expected;
  struct open_one {
    memprof::extend::open_operation operation;
    std::int64_t begin;
    std::int64_t net;
  };
  std::vector<std::vector<open_one>> open(4);
  std::vector<std::int64_t> net(4);
  std::int64_t now = 0;
  std::uint64_t address = 4096;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t thread = random.below(3) + 1;
    writer.on_thread(static_cast<std::uint32_t>(thread));
    writer.at(++now);
    const std::uint64_t choice = random.below(10);
    if (choice < 3 && open[thread].size() < 5) {
      open[thread].push_back({writer.begin_operation("op " + std::to_string(random.below(4))), now, net[thread]});
    } else if (choice < 6 && !open[thread].empty()) {
      const open_one ended = open[thread].back();
      open[thread].pop_back();
      writer.end_operation(ended.operation);
      ++expected[{ended.begin, now, static_cast<std::int64_t>(open[thread].size()), net[thread] - ended.net}];
    } else {
      const std::uint64_t bytes = 1 + random.below(100);
      writer.allocate(space, address += 4096, bytes);
      net[thread] += static_cast<std::int64_t>(bytes);
    }
  }
  for (const std::vector<open_one>& of_thread : open) {
    for (std::size_t depth = 0; depth < of_thread.size(); ++depth) {
      const std::size_t thread = static_cast<std::size_t>(&of_thread - open.data());
      ++expected[{of_thread[depth].begin, now, static_cast<std::int64_t>(depth), net[thread] - of_thread[depth].net}];
    }
  }
  writer.finish();
  const page_reader page = page_of(source);
  const page_table& rows = page.table("invocations");
  std::map<invocation, int> shown;
  for (std::size_t row = 0; row < rows.at("count").size(); ++row) {
    CHECK(rows.at("count")[row] == 1);
    ++shown[{rows.at("begin_ns")[row], rows.at("end_ns")[row], rows.at("depth")[row],
             page.table("deltas", 0, 0).at("delta")[row]}];
  }
  CHECK(shown == expected);
  CHECK(page.run["detail"]["threads"].size() == 3);
}

TEST_CASE("write_html: what a thread does for another one's operation is in the rows of both", "[html]") {
  using memprof::detail::scope_address;
  using memprof::extend::event_kind;
  for (const bool is_inferred : {false, true}) {
    CAPTURE(is_inferred);
    trace source;
    memprof::extend::capture_info info;
    if (is_inferred) info.leading_thread = 77;
    source.info(info);
    source.name(1, "step");
    source.name(2, "forward");
    source.name(3, "cpu");
    source.space({0, 3, 0, false});
    std::uint64_t now = 0;
    const auto put = [&](std::uint32_t ring, memprof::extend::event recorded) {
      recorded.stamp = ++now;
      source.events(&recorded, &recorded + 1, ring);
    };
    put(1, {0, 1, 77, 0, event_kind::thread_begin, memprof::extend::any_space, 0});
    put(2, {0, 2, 78, 0, event_kind::thread_begin, memprof::extend::any_space, 0});
    put(1, {0, scope_address(1, 0), 0, 1, event_kind::scope_begin, memprof::extend::any_space, 0});
    put(1, {0, scope_address(2, 1), 0, 2, event_kind::scope_begin, memprof::extend::any_space, 0});
    put(1, {0, 0x100, 1000, 0, event_kind::allocate, 0, 0});
    if (!is_inferred)
      put(2, {0, scope_address(1, 0), scope_address(2, 1), 2, event_kind::scope_begin, memprof::extend::any_space, 0});
    put(2, {0, 0x200, 100, 0, event_kind::allocate, 0, 0});
    put(1, {0, 2, 0, 2, event_kind::scope_end, memprof::extend::any_space, 0});
    put(2, {0, 0x300, 10, 0, event_kind::allocate, 0, 0});
    if (!is_inferred) put(2, {0, 1, 0, 2, event_kind::scope_end, memprof::extend::any_space, 0});
    put(2, {0, 0x400, 1, 0, event_kind::allocate, 0, 0});
    put(1, {0, 1, 0, 1, event_kind::scope_end, memprof::extend::any_space, 0});
    put(0, {0, 0, 0, 0, event_kind::capture_end, memprof::extend::any_space, 0});
    const page_reader page = page_of(source);
    const page_table& rows = page.table("invocations");
    // By thread and depth: the operation, and what changed meanwhile.
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>> shown;
    for (std::size_t row = 0; row < rows.at("count").size(); ++row) {
      shown[{rows.at("thread")[row], rows.at("depth")[row]}] = {rows.at("operation")[row],
                                                                page.table("deltas", 0, 0).at("delta")[row]};
    }
    const std::int64_t step = 1;
    const std::int64_t forward = 2;
    CHECK(shown.at({0, 0}) == std::pair{step, std::int64_t{is_inferred ? 1111 : 1110}});
    CHECK(shown.at({0, 1}) == std::pair{forward, std::int64_t{1100}});
    CHECK(shown.size() == (is_inferred ? 2 : 3));
    if (!is_inferred) CHECK(shown.at({1, 0}) == std::pair{forward, std::int64_t{110}});
  }
}

TEST_CASE("write_html: of too many invocations the longest have rows of their own", "[html]") {
  using memprof::detail::frame_invocations;
  memprof::property::random_numbers random{3};
  frame_invocations kept{10, 1};
  std::vector<std::uint64_t> durations;
  std::int64_t sum = 0;
  std::uint64_t now = 0;
  for (std::uint64_t each = 0; each < 1000; ++each) {
    const std::uint64_t duration = 1 + random.below(1'000'000);
    const auto delta = static_cast<std::int64_t>(random.below(1000));
    kept.add({0, 0, 1 + static_cast<std::uint32_t>(each % 2), {2 * each, now}, {2 * each + 1, now + duration}, 1, 0},
             [&](std::size_t) { return delta; });
    durations.push_back(duration);
    sum += delta;
    now += duration;
  }
  kept.finish();
  std::sort(durations.begin(), durations.end(), std::greater{});
  std::vector<std::uint64_t> own;
  std::uint64_t count = 0;
  for (const frame_invocations::row& row : kept.rows()) {
    count += row.count;
    sum -= kept.delta(row, 0);
    if (row.count == 1 && row.end.stamp - row.begin.stamp >= durations[9]) own.push_back(row.end.stamp - row.begin.stamp);
  }
  std::sort(own.begin(), own.end(), std::greater{});
  CHECK(own == std::vector<std::uint64_t>(durations.begin(), durations.begin() + 10));
  CHECK(count == 1000);
  CHECK(kept.count() == 1000);
  CHECK(sum == 0);
  CHECK(kept.rows().size() <= 21);
}

TEST_CASE("write_html: of too many blocks those at the peak are kept, and the largest by bytes times events", "[html]") {
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  for (std::uint64_t block = 0; block < 30000; ++block) {
    writer.allocate(space, 0x1000000 + block * 64, 10 + block % 7);
    writer.deallocate(space, 0x1000000 + block * 64);
  }
  for (std::uint64_t block = 0; block < 100; ++block) writer.allocate(space, 64 + block * 64, 1);  // the peak: 100 small ones
  for (std::uint64_t block = 0; block < 100; ++block) writer.deallocate(space, 64 + block * 64);
  writer.finish();
  const page_reader page = page_of(source);
  page_check{page, source}.everything();
  const page_table& rows = page.table("blocks", 0, 0);
  REQUIRE(rows.at("bytes").size() == 20000);
  CHECK(std::count(rows.at("bytes").begin(), rows.at("bytes").end(), 1) == 100);
  // Of the others, each of which lived for an event, 19,900 of the largest: 4285 of each size from 16 to 13, and then of 12.
  CHECK(std::count(rows.at("bytes").begin(), rows.at("bytes").end(), 10) == 0);
  CHECK(std::count(rows.at("bytes").begin(), rows.at("bytes").end(), 16) == 4285);
  CHECK(page.run["detail"]["frames"][0]["blocks"][0] == 30100);
}

TEST_CASE("write_html: of too many owners the greatest are recorded apart, and all others are one for each category", "[html]") {
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  for (std::uint64_t owner = 0; owner < 200; ++owner) {
    const auto scope = writer.begin_operation("op " + std::to_string(owner));
    writer.allocate(space, 4096 * (owner + 1), 1000 + owner, owner % 2 == 0 ? category::activation : category::gradient);
    writer.end_operation(scope);
  }
  writer.finish();
  const page_reader page = page_of(source);
  page_check{page, source}.everything();
  const auto& owners = page.run["detail"]["owners"];
  REQUIRE(owners.size() == 66);
  for (std::size_t rank = 0; rank < 64; ++rank) CHECK(owners[rank]["operation"] == 199 - rank);
  CHECK(owners[64] == nlohmann::ordered_json{{"operation", -2}, {"category", "gradient"}});
  CHECK(owners[65] == nlohmann::ordered_json{{"operation", -2}, {"category", "activation"}});
}

TEST_CASE("write_html: names never meet the HTML parser and come back as they were", "[html]") {
  const std::vector<std::string> names{
      "</script><script>alert(1)</script>", "\"quoted\" 'twice' \\ back", "two\nlines\r\n\ttab",
      "<!-- comment --> ]]> &amp; \x01",    std::string(4096, 'x'),       "\xF0\x9F\x94\xA5 \xC3\xA9"};
  trace source;
  trace_writer writer{source};
  std::uint64_t address = 4096;
  for (const std::string& name : names) {
    const memprof::extend::space_id space = writer.space(name);
    const auto scope = writer.begin_operation(name);
    writer.allocate(space, address, 100);
    writer.annotate(address, {.name = name});
    writer.end_operation(scope);
    writer.end_segment(name);
    address += 4096;
  }
  writer.add_facts({names[0], {names[0]}, {{names[1]}}});
  writer.finish();
  const page_reader page = page_of(source, {.title = names[0], .source = names[1], .notes = {names[2]}});
  CHECK(page.text.find("alert(1)") == std::string::npos);
  CHECK(page.run["title"] == names[0]);
  CHECK(page.run["notes"][0] == names[2]);
  for (std::size_t index = 0; index < names.size(); ++index) {
    CHECK(page.run["profile"]["segments"][index]["name"] == names[index]);
    CHECK(page.run["profile"]["spaces"][index]["name"] == names[index]);
    CHECK(page.run["profile"]["operations"][index]["name"] == names[index]);
    const auto name = static_cast<std::size_t>(page.table("blocks", 0, static_cast<std::int64_t>(index)).at("name")[0]);
    CHECK(page.run["detail"]["strings"][name] == names[index]);
  }
  page_check{page, source}.everything();
}

TEST_CASE("write_html: what is not UTF-8 is replaced, so that the page can be read", "[html]") {
  trace source;
  trace_writer writer{source};
  writer.allocate(writer.space("gpu\xFF"), std::uint64_t{64}, 1);
  writer.annotate(std::uint64_t{64}, {.name = "\xC3("});
  writer.finish();
  const page_reader page = page_of(source);
  CHECK(page.run["profile"]["spaces"][0]["name"] == "gpu\xEF\xBF\xBD");
  CHECK(page.run["detail"]["strings"][1] == "\xEF\xBF\xBD(");
}

TEST_CASE("write_html: nothing makes a page too", "[html]") {
  const page_reader of_profile = page_of(memprof::profile{});
  CHECK(of_profile.run["profile"]["spaces"].empty());
  CHECK(of_profile.run["title"] == "memprof");
  const page_reader of_trace = page_of(trace{});
  CHECK(of_trace.run["detail"]["events"] == 0);
  trace source;
  trace_writer writer{source};
  writer.finish();
  const page_reader of_empty_run = page_of(source);
  CHECK(of_empty_run.run["detail"]["events"] == 4);
  CHECK(of_empty_run.run["detail"]["frames"].size() == 1);
  CHECK(of_empty_run.table("invocations").at("count").empty());
}

TEST_CASE("write_html: many memory spaces share the rows", "[html]") {
  trace source;
  trace_writer writer{source};
  std::vector<memprof::extend::space_id> spaces;
  for (int index = 0; index < 200; ++index) spaces.push_back(writer.space("space " + std::to_string(index)));
  for (std::uint64_t event = 0; event < 6000; ++event) {
    writer.at(static_cast<std::int64_t>(event));
    const memprof::extend::space_id space = spaces[event * 7919 % spaces.size()];
    event % 3 == 2 ? writer.deallocate(space, 64 * (event % 1000 + 1))
                   : writer.allocate(space, 64 * (event % 1000 + 1), event % 50);
  }
  writer.finish();
  const page_reader page = page_of(source);
  page_check{page, source}.everything();
  for (std::int64_t index = 0; index < 200; ++index) CHECK(page.table("timeline", 0, index).at("total").size() <= 82);
  CHECK(page.text.size() < 4'000'000);
}

TEST_CASE("write_html: the title is the name of the program, or of the script that Python runs", "[html]") {
  const auto title_of = [](const char* command_line) {
    trace source;
    memprof::extend::capture_info info;
    info.process.command_line = command_line;
    trace_writer{source, info}.finish();
    return page_of(source).run["title"].get<std::string>();
  };
  CHECK(title_of("build/trainer --steps 3") == "trainer");
  CHECK(title_of("/usr/bin/python3.11 -u src/train.py --batch-size 16") == "train.py");
  CHECK(title_of("python3 -m package.train") == "package.train");
  CHECK(title_of("python3 -c pass") == "python3");
  CHECK(title_of("") == "memprof");
}

TEST_CASE("write_html: of many segments a page keeps those that somebody will look for", "[html]") {
  trace source;
  trace_writer writer{source};
  const memprof::extend::space_id space = writer.space("gpu");
  for (std::uint64_t segment = 0; segment < 2000; ++segment) {
    const std::uint64_t bytes = segment == 777 ? 5000 : segment == 1234 ? 9000 : 100;
    writer.allocate(space, std::uint64_t{64}, bytes);
    writer.deallocate(space, std::uint64_t{64});
    writer.end_segment(segment == 777 ? "RARE" : "OFTEN");
  }
  writer.finish();
  const page_reader page = page_of(source);
  const std::vector<std::size_t> kept = page.run["kept_segments"];
  CHECK(page.run["segment_count"] == 2001);
  CHECK(kept.size() == 64);  // as many as the profile keeps
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  for (const std::size_t index : {0, 777, 1234, 1990, 2000}) CHECK(std::find(kept.begin(), kept.end(), index) != kept.end());
  const auto& usage = page.run["profile"]["spaces"][0]["segments"];
  REQUIRE(usage.size() == kept.size());
  const page_table& events = page.table("segments");
  REQUIRE(events.at("begin_event").size() == kept.size());
  std::size_t with_live_set = 0;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    CHECK(usage[row]["segment"] == (kept[row] == 777 ? "RARE" : kept[row] == 2000 ? "END_TRACE" : "OFTEN"));
    CHECK(usage[row]["segment_peak"] == (kept[row] == 777 ? 5000 : kept[row] == 1234 ? 9000 : kept[row] == 2000 ? 0 : 100));
    with_live_set += usage[row]["live_at_peak"].is_null() ? 0 : 1;
    // Three events each, behind the two that begin the trace.
    if (kept[row] != 0 && kept[row] != 2000) CHECK(events.at("begin_event")[row] == static_cast<std::int64_t>(2 + 3 * kept[row]));
    if (kept[row] != 2000) CHECK(events.at("end_event")[row] == static_cast<std::int64_t>(5 + 3 * kept[row]));
  }
  CHECK(with_live_set >= 2);
  CHECK(with_live_set <= 64);
  CHECK(kept.at(page.run["profile"]["spaces"][0]["peak_segment"]) == 1234);
}

TEST_CASE("write_html: where segments are left out, indices of segments are those of the rows that the page has", "[html]") {
  constexpr std::int64_t segments = 2000;
  memprof::profile source;
  source.segment_count = segments;
  memprof::space_profile& space = source.spaces.emplace_back();
  space.name = "gpu";
  for (std::int64_t number = 0; number < segments; ++number) {
    const std::string name = "segment " + std::to_string(number / 100);
    source.segments.push_back({.name = name, .begin_ns = number, .end_ns = number + 1, .number = number});
    memprof::segment_usage& usage = space.segments.emplace_back();
    usage.segment = name;
    usage.segment_peak = number == 1234 ? 9000 : 100;
  }
  space.peak_segment = 1234;
  space.first_shortfall.segment = 1555;
  space.out_of_memory.resize(2);
  space.out_of_memory[0].segment = 5;
  space.out_of_memory[1].segment = 1556;
  source.memories.emplace_back().peak_segment = 1777;
  const page_reader page = page_of(source);
  const std::vector<std::int64_t> kept = page.run["kept_segments"];
  REQUIRE(kept.size() < segments);
  const auto& written = page.run["profile"];
  CHECK(kept.at(written["spaces"][0]["peak_segment"]) == 1234);
  CHECK(written["spaces"][0]["first_shortfall"]["segment"] == -1);  // a segment that the page does not have
  CHECK(kept.at(written["spaces"][0]["out_of_memory"][0]["segment"]) == 5);
  CHECK(written["spaces"][0]["out_of_memory"][1]["segment"] == -1);
  CHECK(kept.at(written["memories"][0]["peak_segment"]) == 1777);
}

TEST_CASE("write_html: a trace that is cut off gives the page of its beginning", "[html]") {
  const scratch_folder folder;
  const std::filesystem::path path = folder / "run.memtrace";
  const std::filesystem::path page_path = folder / "page.html";
  trace source;
  trace_writer writer{source};
  train(writer, 5000, 12, 2);
  memprof::write_trace(source, path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) * 2 / 3);
  const memprof::detail::file_handle opened{std::fopen(path.c_str(), "rb")};
  memprof::html_options given;
  given.source = "run.memtrace";
  const memprof::trace_file_status status = memprof::write_html_of_trace_file(
      opened.get(), path, page_path, given,
      [](const memprof::trace_file_status& found, bool is_empty, memprof::html_options& options) {
        CHECK(!is_empty);
        options.notes.push_back(found.damage);
      });
  CHECK(!status.damage.empty());
  const page_reader page{page_path};
  CHECK(page.run["notes"][0] == status.damage);
  CHECK(page.run["profile"]["exact"] == false);
  CHECK(page.run["profile"]["complete"] == false);
  CHECK(page.run["detail"]["events"].get<std::size_t>() > 50000);
  CHECK(page.table("segments").at("end_event").back() == page.run["detail"]["events"].get<std::int64_t>());
}

TEST_CASE("write_html: a file that would take too much memory is refused, as profile_of does", "[html]") {
  const scratch_folder folder;
  const std::filesystem::path path = folder / "run.memtrace";
  trace source;
  memprof::extend::capture_info info;
  info.full_segments = 65'536;
  source.info(info);
  source.name(1, "cpu");
  source.name(2, "STEP");
  memprof::extend::event made{0, 64, 8, 0, memprof::extend::event_kind::allocate, 0, 0};
  const auto put = [&] {
    ++made.stamp;
    source.events(&made, &made + 1, 1);
  };
  for (; made.space < 254; ++made.space) {
    source.space({made.space, 1, 0, false});
    put();
  }
  made = {made.stamp, 0, 0, 2, memprof::extend::event_kind::segment_end, 0, 0};
  for (int segment = 0; segment < 10'000; ++segment) put();  // each with a row of some 400 bytes for each space
  memprof::write_trace(source, path);
  CHECK_THROWS_WITH(memprof::profile_of(path), Catch::Matchers::ContainsSubstring("it would take too much memory"));
  const memprof::detail::file_handle opened{std::fopen(path.c_str(), "rb")};
  CHECK_THROWS_WITH(
      memprof::write_html_of_trace_file(opened.get(), path, folder / "page.html", {}, [](const auto&, bool, auto&) {}),
      Catch::Matchers::ContainsSubstring("run.memtrace': it would take too much memory"));
  CHECK(!std::filesystem::exists(folder / "page.html"));
}

TEST_CASE("write_html: a page that cannot be written leaves the old one, and is known as a page", "[html]") {
  const scratch_folder folder;
  const std::filesystem::path path = folder / "page.html";
  memprof::write_html(memprof::profile{}, path);
  CHECK(memprof::is_html_page(path));
  CHECK(!memprof::is_html_page(__FILE__));
  CHECK(!memprof::is_html_page("no such file"));
  CHECK_THROWS_AS(memprof::write_html(memprof::profile{}, folder.path()), memprof::error);
  CHECK_THROWS_AS(memprof::write_html(memprof::profile{}, "/nowhere/at/all.html"), memprof::error);
}

TEST_CASE("html: base64, gzip and CRC-32 are those of their standards", "[html]") {
  using memprof::detail::base64;
  CHECK(base64("").empty());  // RFC 4648, section 10
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(memprof::detail::crc32("123456789") == 0xCBF43926U);  // the check value of the catalogue of CRCs
  for (const std::size_t size : {0, 1, 65534, 65535, 65536, 131070, 200000}) {
    std::string bytes(size, '\0');
    for (std::size_t index = 0; index < size; ++index) bytes[index] = static_cast<char>(index * index >> 3U);
    CHECK(memprof_tests::decoded_gzip(memprof::detail::gzip_stored(bytes)) == bytes);
  }
}

TEST_CASE("html: regions of addresses hold every block, in 256 of them at most", "[html]") {
  memprof::property::random_numbers random{11};
  memprof::detail::address_regions regions;
  std::vector<std::pair<std::uint64_t, std::int64_t>> blocks;
  for (int index = 0; index < 5000; ++index) {
    blocks.emplace_back(random.next() >> random.below(50), static_cast<std::int64_t>(random.below(1 << 20)));
    regions.add(blocks.back().first, blocks.back().second);
  }
  blocks.emplace_back(~std::uint64_t{0} - 5, std::int64_t{1} << 40);  // would end behind the last address
  regions.add(blocks.back().first, blocks.back().second);
  regions.finish();
  CHECK(regions.regions().size() <= 256);
  CHECK(regions.regions().size() > 100);
  std::uint64_t offset = 0;
  for (std::size_t index = 0; index < regions.regions().size(); ++index) {
    const auto& region = regions.regions()[index];
    CHECK(region.offset == offset);
    CHECK(region.begin < region.end);
    if (index != 0) CHECK(region.begin - regions.regions()[index - 1].end > 1 << 20);
    offset += region.end - region.begin;
  }
  for (const auto& [address, bytes] : blocks) {
    const auto found = std::find_if(regions.regions().begin(), regions.regions().end(),
                                    [at = address](const auto& region) { return region.begin <= at && at < region.end; });
    REQUIRE(found != regions.regions().end());
    CHECK(regions.offset_of(address) == found->offset + (address - found->begin));
  }
}

}  // namespace

}  // namespace memprof_tests::report_html_page
