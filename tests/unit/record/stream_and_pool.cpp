#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/stream_and_pool.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

namespace memprof_tests::record_stream_and_pool {

using memprof::memory_space;
using memprof::stream_usage;
using memprof::extend::stream_and_pool;

namespace {

[[nodiscard]] const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

TEST_CASE("stream pool: equal names are one, and by default it is none") {
  CHECK(stream_and_pool{} == stream_and_pool{});
  CHECK(stream_and_pool{}.name() == 0);
  CHECK(stream_and_pool{"s"} == stream_and_pool{"s", ""});
  CHECK(stream_and_pool{"s", "p"} == stream_and_pool{"s", "p"});
  CHECK(!(stream_and_pool{"s", "p"} == stream_and_pool{"s"}));
  CHECK(!(stream_and_pool{"s", "p"} == stream_and_pool{"p", "s"}));
  CHECK(stream_and_pool{"", ""}.name() != 0);
}

TEST_CASE("stream pool: what a source tells with one is in a row of the profile, under its names") {
  const memory_space space{"stream_and_pool test"};
  const std::string long_name(100, 'x');
  memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture();
  const stream_and_pool first{"first", "private"};
  const stream_and_pool second{long_name, long_name};
  sink.reserve(space, at(0x100000), 4096, first);
  sink.allocate_on_stream(space, at(0x100000), 100, first);
  sink.allocate_on_stream(space, at(0x100100), 20, first, memprof::category::parameter);
  sink.allocate_on_stream(space, at(0x200000), 5, second);
  sink.deallocate_on_stream(space, at(0x100000), first);
  sink.request_deallocation(space, at(0x200000), second, 5);
  sink.allocate_on_stream(space, at(0x200100), 7, second);
  sink.complete_deallocation(space, at(0x200000), 5);
  sink.reserve(space, at(0x300000), 1024, first);
  sink.release(space, at(0x100000), 4096, first);
  sink.out_of_memory(space, 1000, 10);
  capture.end();
  const memprof::space_profile& found = capture.profile().space("stream_and_pool test");
  const std::string kept(62, 'x');
  CHECK(found.streams ==
        memprof::vector<stream_usage>{{"first", "private", 120, 20, 2, 5120, 1024}, {kept, kept, 7, 7, 2, 0, 0}});
  CHECK(found.active.peak == 125);  // and 20 + 5 + 7 after the first free
  CHECK(found.active.current == 27);
  CHECK(found.active.missing_completions.count == 0);
  CHECK(found.live_at_peak.by_category.front().owner == "other");
  REQUIRE(found.out_of_memory.size() == 1);
  CHECK(found.out_of_memory[0].requested == 1000);
  CHECK(found.out_of_memory[0].device_free == 10);
  CHECK(found.out_of_memory[0].live_bytes == 27);
  CHECK(found.out_of_memory[0].reserved_bytes == 1024);
  CHECK(capture.profile().exact);
}

}  // namespace memprof_tests::record_stream_and_pool
