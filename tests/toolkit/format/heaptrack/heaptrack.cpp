#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>
#include <unit/trace/trace_records.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace memprof_tests::format_heaptrack {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::extend::event_kind;

namespace {

struct reading {
  std::string damage;
  bool is_attached = false;
  std::vector<memprof::extend::event> events;  ///< of memory
  memprof::profile profile;

  [[nodiscard]] const memprof::space_profile& cpu() const { return profile.space("cpu"); }
  [[nodiscard]] std::multiset<std::string> paths() const {
    std::multiset<std::string> all;
    for (const memprof::operation_profile& operation : profile.operations) all.insert(operation.path);
    return all;
  }
};

memprof::detail::file_handle file_of(const std::string& text, const std::string& path) {
  std::ofstream{path, std::ios::binary} << text;
  return memprof::detail::file_handle{std::fopen(path.c_str(), "rb")};
}

reading read(const std::string& text, memprof::stack_frames frames = memprof::stack_frames::own) {
  const memprof_tests::scratch_folder folder;
  const memprof::detail::file_handle file = file_of(text, folder.file("app.heaptrack"));
  memprof::heaptrack_source source{file.get(), "app.heaptrack", frames};
  memprof::trace made;
  memprof::extend::trace_writer writer{made, source.info()};
  source.write_to(writer);
  writer.finish();
  memprof_tests::trace_records records;
  made.visit(records);
  reading result{source.damage(), source.is_attached(), {}, memprof::profile_of(made)};
  for (const auto& [ring, event] : records.all) {
    if (event.kind == event_kind::allocate || event.kind == event_kind::deallocate) result.events.push_back(event);
  }
  return result;
}

const std::string ending = "\n# strings: 0\n# ips: 0\n";

/// The tables of a program: `_start` calls `main`, into which `inlined` was inlined, which calls `keep`; beside it a stack in
/// a library without symbols.
const std::string tables =
    "s /bin/app\n"                                   // 1
    "s main\n"                                       // 2
    "s /src/app.cpp\n"                               // 3
    "s void* work::keep<int>(unsigned long)\n"       // 4
    "s operator new(unsigned long)\n"                // 5
    "s /lib/libx.so.6\n"                             // 6
    "s work::inlined(unsigned long, char const*)\n"  // 7
    "s _start\n"                                     // 8
    "i 10 1 8\n"                                     // 1
    "i 11 1 7 3 a 2 3 f\n"                           // 2: line 10 of app.cpp, within line 15
    "i 12 1 4 3 9\n"                                 // 3
    "i 13 6 5\n"                                     // 4
    "i 14 6\n"                                       // 5
    "t 1 0\n"
    "t 2 1\n"
    "t 3 2\n"
    "t 4 3\n"   // 4: within `operator new`
    "t 5 0\n"   // 5
    "a 64 4\n"  // 0: 100 bytes
    "a 10 5\n"  // 1: 16 bytes
    "a 64 3\n"  // 2: 100 bytes, at the same place but without `operator new`
    "a 0 0\n";  // 3: nothing, from nowhere

TEST_CASE("heaptrack: blocks, times and operations are those of the recording", "[format]") {
  const reading got = read("v 10000 1\nX ./app --steps 3\nI 1000 4000\n" + tables +
                           "+ 0\n+ 0\n"
                           "c a\nR 5\n+ 1\n- 0\n"
                           "c 14\nR 3\n- 0\n"
                           "c 1e\n" +
                           ending);
  CHECK(got.damage.empty());
  CHECK_FALSE(got.is_attached);
  CHECK(got.profile.process.command_line == "./app --steps 3");
  CHECK(got.cpu().cumulative_peak == 100 + 100 + 16);
  CHECK(got.cpu().cumulative_current == 16);
  CHECK(got.cpu().allocations == 216);
  CHECK(got.cpu().allocation_count == 3);
  CHECK(got.cpu().anomalies == memprof::space_anomalies{});
  CHECK(got.profile.duration_ns == 30'000'000);

  REQUIRE(got.events.size() == 5);
  CHECK(got.events[2].stamp - got.events[0].stamp == 10'000'000);
  CHECK(got.events[4].stamp - got.events[0].stamp == 20'000'000);
  // Which of two equal blocks is freed is not recorded: the newer one first.
  CHECK(got.events[3].address == got.events[1].address);
  CHECK(got.events[4].address == got.events[0].address);
  CHECK(got.events[1].address >= got.events[0].address + 100);

  const std::string main = "main (app.cpp:15)";
  CHECK(got.paths() == std::multiset<std::string>{main, main + "/work::inlined (app.cpp:10)",
                                                  main + "/work::inlined (app.cpp:10)/work::keep<int> (app.cpp:9)",
                                                  "?? (libx.so.6)"});

  const auto facts = memprof::rows_of<memprof::heaptrack_recording_fact>(got.profile.facts);
  REQUIRE(facts.size() == 1);
  CHECK(facts[0].heaptrack_version == "1.0.0");
  CHECK(facts[0].file_version == 1);
  CHECK(facts[0].system_memory_bytes == 0x1000 * 0x4000);
  CHECK(facts[0].peak_rss_bytes == 5 * 0x1000);
  CHECK(facts[0].peak_rss_at_ns == 10'000'000);
  CHECK(facts[0].is_attached == 0);
}

TEST_CASE("heaptrack: an operation has what its stack allocated, frees nothing and takes no time", "[format]") {
  const reading got = read("v 10000 1\n" + tables + "+ 0\n+ 2\n- 0\n+ 0\nc a\n- 2\n+ 1\n" + ending);
  std::int64_t kept = 0;
  for (const memprof::operation_profile& operation : got.profile.operations) {
    for (const memprof::operation_usage& usage : operation.usage) {
      CHECK(usage.freed == 0);
      if (operation.name == "work::keep<int> (app.cpp:9)") kept = usage.self_allocated;
    }
  }
  CHECK(kept == 300);
  // `operator new` is left out, so the second allocation is in the same call. A free ends what is open, and so does time.
  for (const memprof::operation_profile& operation : got.profile.operations)
    CHECK(operation.invocations == (operation.name[0] == '?' ? 1 : 2));
  CHECK(got.cpu().cumulative_current == 100 + 16);
}

TEST_CASE("heaptrack: strings have their length before them since version 3", "[format]") {
  const std::string rest = "i 1 1 2\nt 1 0\na 1 1\n+ 0\n" + ending;
  CHECK(read("v 10100 2\ns /a b.so\ns f(int, int)\n" + rest).paths() == std::multiset<std::string>{"f (a b.so)"});
  CHECK(read("v 10400 3\ns 7 /a b.so\ns b f(int, int)\n" + rest).paths() == std::multiset<std::string>{"f (a b.so)"});
  CHECK(read("v 10200\ns /a b.so\ns f(int, int)\n" + rest).paths() == std::multiset<std::string>{"f (a b.so)"});  // is version 1
  CHECK_THROWS_MATCHES(read("v 10400 3\ns 8 /a b.so\n" + rest), memprof::error,
                       MessageMatches(ContainsSubstring("line 2: the string does not match the length")));
}

TEST_CASE("heaptrack: addresses are used again by blocks of the same size, and live blocks do not overlap", "[format]") {
  const reading got = read("v 10000 1\n" + tables + "+ 0\n- 0\n+ 2\n+ 0\n- 2\n- 0\n+ 1\n+ 3\n+ 3\n" + ending);
  REQUIRE(got.events.size() == 9);
  CHECK(got.events[2].address == got.events[0].address);
  CHECK(got.events[3].address >= got.events[2].address + 100);
  CHECK(got.events[4].address == got.events[2].address);
  CHECK(got.cpu().allocation_count == 6);
  CHECK(got.cpu().anomalies == memprof::space_anomalies{});
  CHECK(got.events[7].address != got.events[8].address);  // empty blocks are blocks
}

TEST_CASE("heaptrack: what a program had before heaptrack was attached is in no number", "[format]") {
  CHECK(read("v 10000 1\nA\n" + tables + "+ 0\n" + ending).is_attached);
  CHECK(read("v 10000 1\n" + tables + "A\n+ 0\n" + ending).is_attached);
}

/// A recording of one block whose stack has these functions, the outermost first, each with its number as its line.
std::string recording_of(const std::vector<std::string>& functions) {
  std::string text = "v 10000 1\ns /bin/app\n";
  std::uint32_t number = 0;
  for (const std::string& function : functions) {
    char line[64];
    ++number;
    std::snprintf(line, sizeof line, "\ni %x 1 %x 1 %x\nt %x %x\n", number, number + 1, number, number, number - 1);
    text += "s " + function + line;
  }
  char last[32];
  std::snprintf(last, sizeof last, "a 8 %x\n+ 0\n", number);
  return text + last + ending;
}

TEST_CASE("heaptrack: a block belongs to the program's innermost function, not to the library that served it", "[format]") {
  const std::string text = recording_of(
      {"main", "void std::for_each<int*, f>(int*, int*, f)", "app::visit(int)", "app::table::table(unsigned long)",
       "std::vector<int>::vector(unsigned long, int const&)", "std::allocator_traits<std::allocator<int> >::allocate(int)",
       "__gnu_cxx::new_allocator<int>::allocate(unsigned long)", "operator new(unsigned long)"});
  const std::string own = "main (app:1)/app::visit (app:3)/app::table::table (app:4)";
  const reading got = read(text);
  CHECK(got.paths() == std::multiset<std::string>{"main (app:1)", "main (app:1)/app::visit (app:3)", own});
  CHECK(got.cpu().live_at_peak.by_operation.at(0).owner == own);

  const reading all = read(text, memprof::stack_frames::all);
  CHECK(all.profile.operations.size() == 7);  // heaptrack itself leaves `operator new` out
  CHECK(all.cpu().live_at_peak.by_operation.at(0).owner ==
        "main (app:1)/std::for_each (app:2)/app::visit (app:3)/app::table::table (app:4)/std::vector<int>::vector (app:5)/"
        "std::allocator_traits<std::allocator<int>>::allocate (app:6)/__gnu_cxx::new_allocator<int>::allocate (app:7)");
}

TEST_CASE("heaptrack: a stack of library functions only belongs to the outermost", "[format]") {
  CHECK(read(recording_of({"std::locale::classic()", "std::locale::_S_initialize_once()", "operator new(unsigned long)"}))
            .paths() == std::multiset<std::string>{"std::locale::classic (app:1)"});
  CHECK(read(recording_of({"operator new(unsigned long)"})).paths().empty());
}

TEST_CASE("heaptrack: a stack deeper than the ledger keeps apart has its outermost operations and its innermost", "[format]") {
  std::string text = "v 10000 1\ns /bin/app\ns f\n";
  for (int frame = 1; frame <= 300; ++frame) {
    char line[64];
    std::snprintf(line, sizeof line, "i %x 1 2 1 %x\nt %x %x\n", static_cast<unsigned>(frame), static_cast<unsigned>(frame),
                  static_cast<unsigned>(frame), static_cast<unsigned>(frame - 1));
    text += line;
  }
  const reading got = read(text + "a 8 12c\n+ 0\n" + ending);
  CHECK(got.profile.operations.size() == 256);
  CHECK(got.profile.operations.front().name == "f (app:1)");
  CHECK(got.profile.operations.at(254).name == "f (app:255)");
  CHECK(got.profile.operations.back().name == "f (app:300)");
  CHECK(got.cpu().cumulative_peak == 8);
}

TEST_CASE("heaptrack: a recording that is cut off gives what comes before", "[format]") {
  const std::string whole = "v 10000 1\n" + tables + "+ 0\n+ 1\n";  // 24 lines
  const reading no_ending = read(whole);
  CHECK_THAT(no_ending.damage, ContainsSubstring("line 25 is the last, but a recording ends with"));
  CHECK(no_ending.cpu().cumulative_current == 116);
  const reading cut = read(whole.substr(0, whole.size() - 1));
  CHECK(cut.damage == "line 25 is cut off");
  CHECK(cut.cpu().cumulative_current == 100);
  // Wherever it ends, there is a word about it.
  for (std::size_t size = 10; size < whole.size(); ++size) CHECK_FALSE(read(whole.substr(0, size)).damage.empty());
}

TEST_CASE("heaptrack: what is no line of heaptrack is an error with its number", "[format]") {
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto fault = [](const std::string& lines) { (void)read("v 10000 1\n" + lines + ending); };
  for (const char* const other : {"", "v", "v 10000 1", "x 10000 1\n", "Thread,Time\n"})
    CHECK_THROWS_MATCHES(read(other), memprof::error, says("'app.heaptrack': not a recording of heaptrack"));
  CHECK_THROWS_MATCHES(read("v 10000 4\n"), memprof::error,
                       says("line 1: unsupported version 4 of heaptrack's format; expected 1, 2 or 3"));
  CHECK_THROWS_MATCHES(read("v 900\n"), memprof::error, says("line 1: unsupported version 0 of heaptrack's format"));
  CHECK_THROWS_MATCHES(read("v zz 1\n"), memprof::error, says("line 1: expected the versions of heaptrack"));
  CHECK_THROWS_MATCHES(fault("x /bin/app\n"), memprof::error, says("line 2: the recording is raw"));
  CHECK_THROWS_MATCHES(fault("s a\nm 1 x 0\n"), memprof::error, says("line 3: the recording is raw"));
  CHECK_THROWS_MATCHES(fault("v 10000 1\n"), memprof::error, says("line 2: a second recording begins here"));
  CHECK_THROWS_MATCHES(fault("? 1\n"), memprof::error, says("line 2: unknown kind of line: '? 1'"));
  CHECK_THROWS_MATCHES(fault(std::string{"\x01\0?", 3} + std::string(70, 'y') + "\n"), memprof::error,
                       says(("'\\x01\\x00?" + std::string(61, 'y') + "...'").c_str()));
  CHECK_THROWS_MATCHES(read("v 10000 1\r\n"), memprof::error, says("line 1: ends with CR LF"));
  CHECK_THROWS_MATCHES(read("\xEF\xBB\xBFv 10000 1\n"), memprof::error, says("line 1: begins with a byte order mark"));
  CHECK_THROWS_MATCHES(fault("+\n"), memprof::error, says("line 2: unknown kind of line: '+'"));
  CHECK_THROWS_MATCHES(fault("+ 0\n"), memprof::error, says("line 2: the allocation is not defined above"));
  CHECK_THROWS_MATCHES(fault("a 1 0\n+ 0 0\n"), memprof::error, says("line 3: expected one hexadecimal number"));
  CHECK_THROWS_MATCHES(fault("a 1 0\n+ -0\n"), memprof::error, says("line 3: expected one hexadecimal number"));
  CHECK_THROWS_MATCHES(fault("a 1 0\n- 0\n"), memprof::error, says("line 3: no such allocation is live"));
  CHECK_THROWS_MATCHES(fault("a 1\n"), memprof::error, says("line 2: expected two hexadecimal numbers"));
  CHECK_THROWS_MATCHES(fault("a 1 1\n"), memprof::error, says("line 2: the stack is not defined above"));
  CHECK_THROWS_MATCHES(fault("a ffffffffffffffff 0\n"), memprof::error, says("line 2: size exceeds 2^47 bytes"));
  CHECK_THROWS_MATCHES(fault("a 11111111111111111 0\n"), memprof::error, says("line 2: expected two hexadecimal numbers"));
  CHECK_THROWS_MATCHES(fault("t 1 0\n"), memprof::error, says("line 2: the instruction pointer is not defined above"));
  CHECK_THROWS_MATCHES(fault("t 0 1\n"), memprof::error, says("line 2: the stack is not defined above"));
  CHECK_THROWS_MATCHES(fault("i 1 1\n"), memprof::error, says("line 2: a string is not defined above"));
  CHECK_THROWS_MATCHES(fault("s a\ni 1 1 1 1\n"), memprof::error, says("line 3: expected an address, a module"));
  CHECK_THROWS_MATCHES(fault("i 1\n"), memprof::error, says("line 2: expected an address, a module"));
  CHECK_THROWS_MATCHES(fault("c 5\nc 4\n"), memprof::error, says("line 3: time runs backwards or overflows"));
  CHECK_THROWS_MATCHES(fault("c ffffffffffffffff\n"), memprof::error, says("line 2: time runs backwards or overflows"));
  CHECK_THROWS_MATCHES(fault("I 1000 ffffffffffffffff\n"), memprof::error, says("line 2: size exceeds 2^47 bytes"));
  CHECK_THROWS_MATCHES(fault("I 1000 1\nR ffffffffffffffff\n"), memprof::error, says("line 3: size exceeds 2^47 bytes"));
  CHECK_THROWS_MATCHES(fault("s " + std::string(std::size_t{17} << 20, 'x') + "\n"), memprof::error, says("line 2: longer than"));
  std::string deep = "i 1 0\n";
  for (unsigned depth = 0; depth < 4097; ++depth) {
    char line[32];
    std::snprintf(line, sizeof line, "t 1 %x\n", depth);
    deep += line;
  }
  CHECK_THROWS_MATCHES(fault(deep), memprof::error, says("line 4099: the stack is deeper than heaptrack records"));
}

TEST_CASE("heaptrack: its recordings are known by their first line", "[format]") {
  const memprof_tests::scratch_folder folder;
  const auto is = [&](const std::string& text) {
    const memprof::detail::file_handle file = file_of(text, folder.file("any"));
    const bool result = memprof::is_heaptrack(file.get());
    CHECK(std::ftell(file.get()) == 0);
    return result;
  };
  CHECK(is("v 10400 3\nX a\n"));
  CHECK(is("v 10200\n"));
  CHECK(is("v 10400 3\r\n"));  // the reader says what is wrong with it
  CHECK(is("\xEF\xBB\xBFv 10400 3\n"));
  CHECK_FALSE(is("v 10400 3"));
  CHECK_FALSE(is(""));
  CHECK_FALSE(is("v 10400 3 1\n"));
  CHECK_FALSE(is("v x\n"));
  CHECK_FALSE(is("v 1.0 3\n"));
  CHECK_FALSE(is("version 1\n"));
}

}  // namespace

}  // namespace memprof_tests::format_heaptrack
