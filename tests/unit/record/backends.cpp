#include <catch2/catch_test_macros.hpp>

#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/trace/fact_table.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::record_backends {

namespace {

std::string calls;

template <char Letter>
struct noting_backend {
  static constexpr std::string_view name = "noting";
  void attach(memprof::extend::event_sink&, const memprof::capture_options&) { calls += Letter; }
  void detach(memprof::extend::event_sink&) noexcept { calls += static_cast<char>(Letter - 'a' + 'A'); }
  void report_facts(memprof::extend::event_sink&) {}
};

struct telling_backend {
  static constexpr std::string_view name = "telling";
  void attach(memprof::extend::event_sink& writer, const memprof::capture_options&) { writer.allocate(space, this, 100); }
  void detach(memprof::extend::event_sink& writer) noexcept { writer.deallocate(space, this, 100); }
  void report_facts(memprof::extend::event_sink&) {}

  memprof::memory_space space{"written"};
};

struct refusing_backend {
  static constexpr std::string_view name = "refusing";
  void attach(memprof::extend::event_sink&, const memprof::capture_options&) { throw std::runtime_error{"no device"}; }
  void detach(memprof::extend::event_sink&) noexcept { calls += '!'; }
  void report_facts(memprof::extend::event_sink&) {}
};

}  // namespace

TEST_CASE("backends: they are attached in order when a capture begins, and detached once when it ends") {
  calls.clear();
  auto capture = memprof::begin_capture<noting_backend<'a'>, noting_backend<'b'>>();
  CHECK(calls == "ab");
  capture.end();
  capture.end();
  CHECK(calls == "abAB");
}

TEST_CASE("backends: if one refuses, those before it are detached and no capture is active") {
  calls.clear();
  CHECK_THROWS_AS((memprof::begin_capture<noting_backend<'a'>, noting_backend<'b'>, refusing_backend>()), std::runtime_error);
  CHECK(calls == "abBA");
  CHECK_NOTHROW(memprof::begin_capture().end());
}

TEST_CASE("backends: what one tells while it is attached and detached is part of the capture") {
  auto capture = memprof::begin_capture<telling_backend>();
  capture.snapshot("RUNNING");
  capture.end();
  const memprof::space_profile& written = capture.profile().space("written");
  CHECK(written.segments.at(0).segment_change == 100);
  CHECK(written.cumulative_current == 0);
  CHECK(written.anomalies == memprof::space_anomalies{});
}

TEST_CASE("backends: clear detaches those of the active capture") {
  calls.clear();
  auto capture = memprof::begin_capture<noting_backend<'a'>>();
  memprof::discard_capture();
  CHECK(calls == "aA");
}

namespace {

/// Knows how often it was asked.
struct knowing_backend {
  static constexpr std::string_view name = "knowing";
  ~knowing_backend() { calls += '~'; }
  void attach(memprof::extend::event_sink&, const memprof::capture_options& options) { device = options.device.name.view(); }
  void detach(memprof::extend::event_sink&) noexcept { calls += 'D'; }
  void report_facts(memprof::extend::event_sink& writer) {
    writer.add_facts(memprof::extend::to_table<memprof::approximated_operation>({{"aten::guess", device, ++asked, 300}}));
  }

  std::string device;
  std::int64_t asked = 0;
};

memprof::vector<memprof::approximated_operation> known_to(const memprof::profile& profile) {
  return memprof::rows_of<memprof::approximated_operation>(profile.facts);
}

}  // namespace

TEST_CASE("backends: what one knows beside events is in every profile, asked anew until the capture has ended") {
  using rows = std::vector<memprof::approximated_operation>;
  calls.clear();
  auto capture = memprof::begin_capture<noting_backend<'a'>, knowing_backend>({.device = {"imagined"}});
  CHECK(known_to(capture.profile()) == rows{{"aten::guess", "imagined", 1, 300}});
  CHECK(known_to(memprof::current_profile()) == rows{{"aten::guess", "imagined", 2, 300}});
  capture.end();
  CHECK(calls == "aAD");
  CHECK(known_to(capture.profile()) == rows{{"aten::guess", "imagined", 3, 300}});
  CHECK(known_to(memprof::current_profile()) == rows{{"aten::guess", "imagined", 3, 300}});
  memprof::discard_capture();
  CHECK(calls == "aAD~");
}

TEST_CASE("backends: those of the last capture are destroyed when the next begins") {
  calls.clear();
  memprof::begin_capture<knowing_backend>().end();
  CHECK(calls == "D");
  auto next = memprof::begin_capture();
  CHECK(calls == "D~");
  CHECK(known_to(next.profile()).empty());
}

TEST_CASE("backends: what an allocator reserves and gives back stands beside what is allocated") {
  auto capture = memprof::begin_capture();
  const memprof::extend::event_sink sink;
  const memprof::memory_space space{"cached"};
  char segment[64];
  sink.reserve(space, segment, 64);
  sink.allocate(space, segment, 10);
  capture.snapshot("HELD");
  sink.deallocate(space, segment);
  sink.release(space, segment);
  capture.end();
  const memprof::space_profile& cached = capture.profile().space("cached");
  CHECK(cached.cumulative_peak == 10);
  CHECK(cached.reserved.peak == 64);
  CHECK(cached.reserved.current == 0);
  CHECK(cached.reserved.segments == memprof::vector<memprof::reserved_usage>{{64, 64}, {64, 0}});
}

TEST_CASE("facts: whatever table a source adds, the trace has the one that the capture has") {
  using memprof::fact_table;
  const std::string long_text(5000, 'x');
  fact_table wide{"wide", {}, {{}}};
  for (int column = 0; column < 100; ++column) {
    wide.columns.push_back("c" + std::to_string(column));
    wide.rows[0].emplace_back(std::string(4000, 'w'));
  }
  auto capture = memprof::begin_capture();
  const memprof::extend::event_sink sink;
  sink.add_facts({"no columns", {}, {{1}}});
  sink.add_facts({"long text", {"a"}, {{long_text}}});
  sink.add_facts({"short row", {"a", "b"}, {{std::string{"x"}}}});
  sink.add_facts({"long row", {"a"}, {{1, 2}}});
  sink.add_facts({long_text, {long_text}, {{1}}});
  sink.add_facts(wide);
  capture.end();
  // That the trace says the same, tests/replay.cpp checks.
  memprof::vector<fact_table> found = capture.profile().facts;
  erase_if(found, [](const fact_table& table) { return table.name == memprof::process_memory::table; });  // the capture's own
  REQUIRE(found.size() == 6);
  CHECK(found[0] == fact_table{"no columns", {}, {}});
  CHECK(found[1] == fact_table{"long text", {"a"}, {{long_text.substr(0, memprof::detail::max_fact_text)}}});
  CHECK(found[2] == fact_table{"short row", {"a", "b"}, {{std::string{"x"}, 0}}});
  CHECK(found[3] == fact_table{"long row", {"a"}, {{1}}});
  CHECK(found[5].columns.size() == memprof::detail::max_fact_columns);
}

}  // namespace memprof_tests::record_backends
