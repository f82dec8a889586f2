#include <memprof/memprof.hpp>
#include <memprof/record/visit_live_blocks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <map>

namespace memprof_tests::record_following_source {

// What `event_sink` has for sources that follow the calls of another library, as those of libtorch do.

using memprof::extend::event_sink;
using memprof::extend::label;

namespace {

[[nodiscard]] const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

TEST_CASE("following source: operations are begun by label, and end none of a later capture") {
  const event_sink sink;
  const memprof::memory_space space{"following_source test"};
  CHECK(sink.capture() == 0);
  const label name = sink.label_of("layer");
  CHECK(sink.text_of(name) == "layer");
  CHECK(sink.label_of("layer") == name);

  auto first = memprof::begin_capture();
  const std::uint32_t number = sink.capture();
  REQUIRE(number != 0);
  CHECK(sink.is_thread_recordable());
  const memprof::extend::open_operation ended = sink.begin_operation(name, memprof::category::activation);
  sink.allocate(space, at(0x1000), 100);
  sink.end_operation(ended, number);
  const memprof::extend::open_operation left_open = sink.begin_operation(name, {});
  first.end();
  const memprof::profile of_first = first.profile();
  const memprof::operation_profile* const found = of_first.find_operation("layer");
  REQUIRE(found != nullptr);
  CHECK(found->invocations == 2);
  CHECK(found->usage[0].self_allocated == 100);
  CHECK(of_first.space("following_source test").live_at_peak.by_category[0].owner == "activation");

  auto second = memprof::begin_capture();
  CHECK(sink.capture() != number);
  sink.end_operation(left_open, number);
  second.end();
  CHECK(second.profile().anomalies.unbalanced_scopes == 0);
}

TEST_CASE("following source: the innermost name is the program's own, or what the source makes it") {
  const event_sink sink;
  auto capture = memprof::begin_capture();
  CHECK(sink.innermost_name() == 0);
  {
    auto scope = memprof::track_operation("of the program");
    CHECK(sink.text_of(sink.innermost_name()) == "of the program");
    const memprof::extend::open_operation inner = sink.begin_operation(sink.label_of("of the library"), {});
    CHECK(sink.text_of(sink.innermost_name()) == "of the program");
    sink.set_innermost_name(sink.label_of("of the library"));
    CHECK(sink.text_of(sink.innermost_name()) == "of the library");
    sink.end_operation(inner, sink.capture());
    CHECK(sink.text_of(sink.innermost_name()) == "of the program");
  }
  CHECK(sink.innermost_name() == 0);
}

TEST_CASE("following source: an annotation may be a text that is known already") {
  const event_sink sink;
  const memprof::memory_space space{"following_source test"};
  auto capture = memprof::begin_capture();
  const label text = sink.label_of(
      "weight\x1f[2, 3]\x1f"
      "float32");
  sink.allocate(space, at(0x1000), 24);
  sink.annotate(at(0x1000), memprof::category::parameter, text);
  capture.end();
  const memprof::space_profile found = capture.profile().space("following_source test");
  REQUIRE(found.live_at_peak.largest_blocks.size() == 1);
  const memprof::live_block& block = found.live_at_peak.largest_blocks[0];
  CHECK(block.name == "weight");
  CHECK(block.shape == "[2, 3]");
  CHECK(block.category == memprof::category::parameter);
}

TEST_CASE("following source: what it cannot tell makes the profile inexact") {
  auto capture = memprof::begin_capture();
  event_sink{}.count_dropped_event();
  capture.end();
  CHECK(capture.profile().anomalies.dropped_events == 1);
  CHECK_FALSE(capture.profile().exact);
}

TEST_CASE("following source: it can ask for the blocks that are live in the capture so far") {
  const event_sink sink;
  const memprof::memory_space space{"following_source test"};
  std::map<const void*, std::size_t> found;
  const auto look = [&] {
    found.clear();
    memprof::detail::for_each_live_block(space, [&](const void* address, std::size_t bytes) { found[address] = bytes; });
  };
  look();
  CHECK(found.empty());  // there is no capture
  auto capture = memprof::begin_capture();
  sink.allocate(space, at(0x1000), 100);
  sink.allocate(space, at(0x2000), 7);
  sink.deallocate(space, at(0x1000));
  sink.allocate(memprof::memory_space{"another space"}, at(0x3000), 5);
  look();
  CHECK(found == std::map<const void*, std::size_t>{{at(0x2000), 7}});
}

}  // namespace memprof_tests::record_following_source
