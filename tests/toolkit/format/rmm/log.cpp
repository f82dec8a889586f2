#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/rmm/log.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>
#include <unit/trace/trace_records.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace memprof_tests::format_rmm_log {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::extend::event_kind;

namespace {

constexpr const char* head = "Thread,Time,Action,Pointer,Size,Stream\n";

struct rmm_reading {
  std::string ended_by;
  std::vector<memprof::extend::event> events;  ///< of memory
};

rmm_reading read(const std::string& text) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("rmm.csv");
  std::ofstream{path, std::ios::binary} << text;
  memprof::trace made;
  memprof::extend::trace_writer writer{made};
  rmm_reading result;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  result.ended_by = memprof::read_rmm_log(file.get(), path, writer);
  writer.finish();
  memprof_tests::trace_records records;
  made.visit(records);
  for (const auto& [ring, event] : records.all) {
    if (event.kind == event_kind::allocate || event.kind == event_kind::deallocate || event.kind == event_kind::out_of_memory)
      result.events.push_back(event);
  }
  return result;
}

TEST_CASE("rmm log: allocations, frees and failures have their addresses, bytes and times") {
  const rmm_reading got = read(std::string{head} +
                               "7,10:00:00.000001,allocate,0x7f10,256,0x0\n"
                               "8,10:00:00.000003,allocate,(nil),0,0x0\n"
                               "7,10:00:00.000004,allocate failure,(nil),1024,0x0\n"
                               "7,10:00:01.000001,free,0x7f10,256,0x0\n");
  CHECK(got.ended_by.empty());
  REQUIRE(got.events.size() == 4);
  CHECK(got.events[0].kind == event_kind::allocate);
  CHECK(got.events[0].address == 0x7f10);
  CHECK(got.events[0].bytes == 256);
  CHECK(got.events[1].address == 0);
  CHECK(got.events[2].kind == event_kind::out_of_memory);
  CHECK(got.events[2].bytes == 1024);
  CHECK(got.events[3].kind == event_kind::deallocate);
  CHECK(got.events[1].stamp - got.events[0].stamp == 2000);
  CHECK(got.events[3].stamp - got.events[0].stamp == 1'000'000'000);
}

TEST_CASE("rmm log: a time before the last one is after midnight, and a little before is a thread that was slow") {
  const rmm_reading got = read(std::string{head} +
                               "1,23:59:59.000000,allocate,0x10,1,0x0\n"
                               "1,00:00:01.000000,allocate,0x20,1,0x0\n"
                               "1,00:00:00.500000,allocate,0x30,1,0x0\n"
                               "1,00:00:02.000000,allocate,0x40,1,0x0\n"
                               "1,23:59:59.000000,allocate,0x50,1,0x0\n"
                               "1,12:00:00.000000,allocate,0x60,1,0x0\n"
                               "1,00:00:00.000000,allocate,0x70,1,0x0\n");
  REQUIRE(got.events.size() == 7);
  const auto seconds = [&](std::size_t of) { return (got.events[of].stamp - got.events[0].stamp) / 1'000'000'000; };
  CHECK(seconds(1) == 2);
  CHECK(seconds(3) == 3);
  CHECK(seconds(4) == 86'400);
}

TEST_CASE("rmm log: what is no line is an error with its number, and the last may be cut off") {
  const auto fault = [](const std::string& line) { (void)read(head + line + "\n1,10:00:00.000000,free,0x10,1,0x0\n"); };
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  CHECK_THROWS_MATCHES(fault("1,10:00:00.000000,allocate,0x10,1"), memprof::error, says("line 2: expected Thread,Time,"));
  CHECK_THROWS_MATCHES(fault("x,10:00:00.000000,allocate,0x10,1,0x0"), memprof::error, says("'x' is not a thread number"));
  CHECK_THROWS_MATCHES(fault("1,10:00:60,allocate,0x10,1,0x0"), memprof::error, says("'10:00:60' is not a time"));
  CHECK_THROWS_MATCHES(fault("1,24:00:00.000000,allocate,0x10,1,0x0"), memprof::error, says("'24:00:00.000000' is not a time"));
  CHECK_THROWS_MATCHES(fault("1,10:00:00.000000,grow,0x10,1,0x0"), memprof::error, says("'grow' is not an action"));
  CHECK_THROWS_MATCHES(fault("1,10:00:00.000000,free,zz,1,0x0"), memprof::error, says("'zz' is not an address"));
  CHECK_THROWS_MATCHES(fault("1,10:00:00.000000,free,0x10,-1,0x0"), memprof::error, says("'-1' is not a number of bytes"));
  CHECK_THROWS_MATCHES(fault(std::string(5000, 'x')), memprof::error, says("line 2: longer than any line"));
  // A zero byte does not end the message.
  CHECK_THROWS_MATCHES(fault(std::string{"1,10:00:00.000000,fr\0ee,0x10,1,0x0", 35}), memprof::error,
                       says("'fr\\x00ee' is not an action (allocate, allocate failure or free)"));
  const rmm_reading cut = read(std::string{head} + "1,10:00:00.000000,allocate,0x10,1,0x0\n1,10:00:00.0");
  CHECK(cut.ended_by == "line 3 is cut off");
  CHECK(cut.events.size() == 1);
  const rmm_reading before_stream =
      read(std::string{head} + "1,10:00:00.000000,allocate,0x10,1,0x0\n1,10:00:00.000000,free,0x10,1,");
  CHECK(before_stream.ended_by == "line 3 is cut off");
  CHECK(before_stream.events.size() == 1);
}

TEST_CASE("rmm log: bytes that no sum can hold are an error with the line") {
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto line = [](const char* bytes) { return std::string{"1,10:00:00.000000,allocate,0x10,"} + bytes + ",0x0\n"; };
  CHECK_THROWS_MATCHES(read(head + line("9223372036854775808")), memprof::error,
                       says("line 2: '9223372036854775808' is not a number of bytes below 2^63"));
  CHECK_THROWS_MATCHES(read(head + line("9223372036854775807") + line("1")), memprof::error,
                       says("line 3: the allocations so far total 2^63 bytes or more"));
  CHECK(read(head + line("9223372036854775806") + line("1")).events.size() == 2);
}

TEST_CASE("rmm log: how much was free when an allocation failed is not in it") {
  const rmm_reading got = read(std::string{head} + "7,10:00:00.000004,allocate failure,(nil),1024,0x0\n");
  REQUIRE(got.events.size() == 1);
  CHECK(got.events[0].address == memprof::extend::unknown_device_free);
}

TEST_CASE("rmm log: it is known by its head, after a byte order mark or none") {
  const memprof_tests::scratch_folder folder;
  const auto is = [&](const std::string& text) {
    const std::string path = folder.file("any");
    std::ofstream{path, std::ios::binary} << text;
    const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
    return memprof::is_rmm_log(file.get()) && std::ftell(file.get()) == 0;
  };
  CHECK(is(head));
  CHECK(is(std::string{"\xEF\xBB\xBF"} + head));
  CHECK_FALSE(is("Thread,Time,Action"));
  CHECK_FALSE(is(""));
  CHECK(read(std::string{"\xEF\xBB\xBF"} + head + "1,10:00:00.000000,free,0x10,1,0x0\n").events.size() == 1);
}

}  // namespace

}  // namespace memprof_tests::format_rmm_log
