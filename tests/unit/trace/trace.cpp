#include <memprof/trace/trace.hpp>

#include <memprof/detail/vector.hpp>
#include <memprof/profile/folded_head.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "trace_records.hpp"

namespace memprof_tests::trace_trace {

using memprof::extend::event;
using memprof::extend::event_kind;
using memprof_tests::trace_records;

namespace {

/// Events as a program makes them and as nobody does, in runs of some rings.
void put_random_events(memprof::trace& target, trace_records& expected, std::uint32_t seed) {
  std::mt19937 random{seed};
  const auto below = [&](std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>{0, end - 1}(random); };
  const auto is_rare = [&] { return below(20) == 0; };
  std::uint64_t stamp = below(1000);
  std::uint32_t last_number = 0;
  for (int run = 0; run < 200; ++run) {
    std::vector<event> events(1 + below(700));
    for (event& made : events) {
      made = {};
      made.kind = static_cast<event_kind>(is_rare() ? below(256) : 1 + below(6));
      made.space = static_cast<std::uint8_t>(is_rare() ? below(256) : below(3));
      made.address = is_rare() ? random() * std::uint64_t{0x1'0000'0001} : 0x7f00'0000'0000 + 16 * below(5000);
      made.bytes = is_rare() ? random() * std::uint64_t{0x1'0000'0001} : 8 * below(64);
      made.tag = static_cast<std::uint16_t>(is_rare() ? below(0x10000) : below(4));
      made.label = static_cast<std::uint32_t>(is_rare() ? random() : below(20));
      if (!is_rare() && made.kind == event_kind::scope_begin) {
        made.address = memprof::detail::scope_address(last_number + 1, last_number);
        ++last_number;
      }
      if (below(3) == 0) made.stamp = stamp += is_rare() ? random() : below(200);
      if (is_rare() && stamp > 1000) made.stamp = stamp - below(1000);  // other threads' events come later
    }
    const auto ring = static_cast<std::uint32_t>(is_rare() ? random() : below(12));
    target.events(events.data(), events.data() + events.size(), ring);
    expected.events(events.data(), events.data() + events.size(), ring);
  }
}

}  // namespace

TEST_CASE("trace: whatever goes in comes out, in order") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    memprof::trace stored;
    trace_records expected;
    put_random_events(stored, expected, seed);
    trace_records found;
    stored.visit(found);
    INFO("seed " << seed);
    CHECK(stored.size() == expected.all.size());
    REQUIRE(found.all == expected.all);
  }
}

TEST_CASE("trace: a block that comes again has its old size, or a new one that is kept, and a free of it has that or none") {
  const auto made = [](event_kind kind, std::uint64_t bytes) {
    event next{};
    next.kind = kind;
    next.address = 0x7f00'0000'1000;
    next.bytes = bytes;
    next.label = 3;
    return next;
  };
  std::vector<event> events;
  for (const std::uint64_t bytes : {100, 100, 5000, 5000, 100}) {
    for (const std::uint64_t freed : {bytes, std::uint64_t{0}}) {
      events.push_back(made(event_kind::allocate, bytes));
      events.push_back(made(event_kind::deallocate, freed));
    }
  }
  memprof::trace stored;
  trace_records expected;
  stored.events(events.data(), events.data() + events.size(), 1);
  expected.events(events.data(), events.data() + events.size(), 1);
  trace_records found;
  stored.visit(found);
  REQUIRE(found.all == expected.all);
}

TEST_CASE("trace: names, spaces, facts and what the capture was come out as they went in") {
  memprof::trace stored;
  memprof::extend::capture_info info;
  info.library_version = "1.2.3";
  info.mode = memprof::run_mode::no_dispatch;
  info.device = "gpu-24gb";
  info.begin_unix_ns = -5;
  info.begin_stamp = ~std::uint64_t{0};
  info.timeline_points = 7;
  info.process = {42, "host", "a b", 3, 8, 1};
  stored.info(info);
  const std::string long_name(40'000, 'n');
  stored.name(1, "cpu");
  stored.name(2, "");
  stored.name(3, long_name);
  stored.space({0, 1, 0, false});
  stored.space({254, 3, INT64_MAX, true});
  memprof::fact_table table{"libraries", {"path", "bytes", "seconds"}, {}};
  for (int row = 0; row < 5000; ++row) table.rows.push_back({{"/lib/" + std::to_string(row), -row, 0.5 * row}});
  stored.facts(table);
  stored.facts({"empty", {"a"}, {}});

  trace_records found;
  stored.visit(found);
  CHECK(found.infos == std::vector{info});
  CHECK(found.names == std::vector<std::string>{"cpu", "", long_name});
  CHECK(found.spaces == std::vector<memprof::extend::space_definition>{{0, 1, 0, false}, {254, 3, INT64_MAX, true}});
  CHECK(found.tables.all() == memprof::vector<memprof::fact_table>{table, {"empty", {"a"}, {}}});
}

TEST_CASE("trace: names and information of any length fit into a chunk, and nothing after them is lost") {
  const std::string endless(std::size_t{1} << 20, 'n');
  for (const bool is_limited : {false, true}) {
    memprof::trace stored;
    if (is_limited) REQUIRE(memprof::detail::limit_trace(stored, memprof::detail::least_trace_limit));
    memprof::extend::capture_info info;
    info.device = "gpu-24gb";
    info.process.command_line = endless;
    stored.info(info);
    stored.name(1, "cpu");
    stored.name(2, endless);
    stored.name(3, "behind");
    stored.space({0, 1, 0, false});
    trace_records found;
    stored.visit(found);
    REQUIRE(found.infos.size() == 1);
    CHECK(found.infos.front().device == "gpu-24gb");
    CHECK(found.infos.front().process.command_line == endless.substr(0, memprof::detail::label_table::max_name_bytes));
    CHECK(found.names == std::vector<std::string>{"cpu", endless.substr(0, memprof::trace::longest_name), "behind"});
    CHECK(found.spaces.size() == 1);
    CHECK(stored.left_out() == 0);
  }
}

TEST_CASE("trace: a record that is too long for a chunk is counted, and a gap says so") {
  memprof::trace stored;
  stored.keep_newest(std::size_t{1} << 20, 1024, nullptr);
  stored.name(1, std::string(2000, 'n'));
  CHECK(stored.left_out() == 1);
  trace_records found;
  stored.visit(found);
  REQUIRE(found.all.size() == 1);
  CHECK(found.all.back().second.kind == event_kind::gap);
}

TEST_CASE("trace: what does not fit is counted, and a gap says so") {
  memprof::trace stored{std::size_t{256} * 1024};
  std::vector<event> events(100'000);
  std::mt19937_64 random{1};
  for (event& made : events) made = {random(), random(), random(), 0, event_kind::allocate, 0, 0};
  stored.events(events.data(), events.data() + events.size(), 1);
  CHECK(stored.size() + stored.left_out() == events.size());
  CHECK(stored.left_out() > 0);
  trace_records found;
  stored.visit(found);
  REQUIRE(found.all.size() == stored.size() + 1);
  const auto& [ring, last] = found.all.back();
  CHECK(ring == memprof::detail::no_ring_id);
  CHECK(last.kind == event_kind::gap);
  CHECK(last.bytes == stored.left_out());
}

TEST_CASE("trace: steps that repeat take some three bytes an event") {
  memprof::trace stored;
  memprof::extend::trace_writer writer{stored};
  const memprof::extend::space_id cpu = writer.space("cpu");
  for (std::int64_t step = 0; step < 1000; ++step) {
    writer.at(step * 1'000'000);
    const auto operation = writer.begin_operation("layer");
    for (std::uint64_t block = 0; block < 50; ++block) writer.allocate(cpu, 0x7f00'0000'1000 + 4096 * block, 1000 + block);
    for (std::uint64_t block = 0; block < 50; ++block) writer.deallocate(cpu, 0x7f00'0000'1000 + 4096 * block);
    writer.end_operation(operation);
  }
  writer.finish();
  CHECK(static_cast<double>(stored.encoded_bytes()) < 3.5 * static_cast<double>(stored.size()));
}

TEST_CASE("trace: any bytes are decoded without harm, and only records are handed on") {
  std::mt19937 random{7};
  trace_records found;
  struct adapter {
    trace_records& found;
    std::size_t definitions = 0;
    void events(const event* first, const event* last, std::uint32_t ring) { found.events(first, last, ring); }
    void definition(memprof::detail::control kind, std::string_view payload) {
      definitions += memprof::detail::visit_definition(kind, payload, found) ? 1 : 0;
    }
  };
  adapter adapted{found};
  const auto decoder = std::make_unique<memprof::detail::trace_decoder>();
  std::size_t stopped_early = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<unsigned char> bytes(random() % 300);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() % (round % 2 == 0 ? 256 : 24));
    decoder->restart();
    const unsigned char* const end = bytes.data() + bytes.size();
    const unsigned char* const stopped = decoder->decode(bytes.data(), end, adapted);
    REQUIRE(stopped >= bytes.data());
    REQUIRE(stopped <= end);
    stopped_early += stopped != end ? 1 : 0;
    found.all.clear();
  }
  CHECK(stopped_early > 1000);
  CHECK(adapted.definitions > 100);
}

}  // namespace memprof_tests::trace_trace
