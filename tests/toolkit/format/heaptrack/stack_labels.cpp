#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>
#include <unit/trace/trace_records.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace memprof_tests::format_heaptrack_stack_labels {

using memprof::source_frame;
using memprof::extend::label;
using texts = std::vector<std::string>;

namespace {

/// The trace of a recording whose stacks are kept as stacks.
struct stacked {
  memprof::trace made;
  memprof::detail::label_table names;
  std::vector<label> allocations;  ///< their labels, in order
  std::unique_ptr<memprof::named_stacks> stacks;

  explicit stacked(const std::string& lines, const std::string& version = "10000 1") {
    const memprof_tests::scratch_folder folder;
    const std::string path = folder.file("app.heaptrack");
    std::ofstream{path, std::ios::binary} << "v " << version << "\n" << lines << "# ips: 0\n";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), &std::fclose};
    memprof::heaptrack_source source{file.get(), "app.heaptrack"};
    memprof::extend::trace_writer writer{made, source.info()};
    source.write_to(writer);
    writer.finish();
    memprof_tests::trace_records records;
    made.visit(records);
    for (const std::string& text : records.names) (void)names.append(text);
    for (const auto& [ring, event] : records.all) {
      if (event.kind == memprof::extend::event_kind::allocate) allocations.push_back(event.label);
    }
    stacks = std::make_unique<memprof::named_stacks>(names);
  }
  [[nodiscard]] texts texts_of(std::size_t allocation) const { return stacks->texts(allocations.at(allocation)); }
};

std::string numbers(const char* format, unsigned first, unsigned second) {
  char line[64];
  std::snprintf(line, sizeof line, format, first, second);
  return line;
}

/// A recursion through `depth` calls, each at an address of its own, and a block of 8 bytes that the innermost one asks for.
std::string recursion(unsigned depth) {
  std::string text = "s /bin/app\ns f\n";
  for (unsigned number = 1; number <= depth; ++number)
    text += numbers("i %x 1 2 1 %x\n", 0x1000 + number, number) + numbers("t %x %x\n", number, number - 1);
  return text + numbers("a %x %x\n", 8, depth) + "+ 0\n";
}

/// `f (app:1)` to `f (app:LAST)`, beginning at `first`.
texts calls(unsigned first, unsigned last) {
  texts expected;
  for (unsigned number = first; number <= last; ++number) expected.push_back("f (app:" + std::to_string(number) + ")");
  return expected;
}

}  // namespace

TEST_CASE("heaptrack: the stack of an allocation is its label, with inlined functions, files and lines", "[format]") {
  const stacked got{
      "s /bin/app\ns main\ns /src/app.cpp\ns void* work::keep<int>(unsigned long)\ns operator new(unsigned long)\n"
      "s /lib/libx.so.6\ns work::inlined(unsigned long, char const*)\ns _start\n"
      "i 10 1 8\n"            // 1
      "i 11 1 7 3 a 2 3 f\n"  // 2: line 10 of app.cpp, within line 15
      "i 12 1 4 3 9\n"        // 3
      "i 13 6 5\n"            // 4
      "i 14 6\n"              // 5: without a name
      "t 1 0\nt 2 1\nt 3 2\nt 4 3\nt 5 0\n"
      "a 64 4\na 10 5\na 64 3\na 0 0\n+ 0\n+ 1\n+ 2\n+ 3\n"};
  REQUIRE(got.allocations.size() == 4);
  const texts whole{"_start", "main (app.cpp:15)", "work::inlined (app.cpp:10)", "work::keep<int> (app.cpp:9)"};
  CHECK(got.texts_of(0) == whole);  // `operator new` called for it
  CHECK(got.texts_of(2) == whole);
  CHECK(got.texts_of(1) == texts{"libx.so.6+0x14"});
  CHECK(got.allocations[3] == 0);
  CHECK(got.stacks->caller(got.allocations[0]) == "work::keep<int> (app.cpp:9)");
  const std::vector<std::vector<source_frame>> frames = got.stacks->frames(got.allocations[0]);
  REQUIRE(frames.size() == 3);
  CHECK(frames[0] == std::vector<source_frame>{{"void* work::keep<int>(unsigned long)", "/src/app.cpp", 9, "app", 0x12}});
  CHECK(frames[1] == std::vector<source_frame>{{"work::inlined(unsigned long, char const*)", "/src/app.cpp", 10, "app", 0x11},
                                               {"main", "/src/app.cpp", 15, "app", 0x11}});
  CHECK(memprof::profile_of(got.made).operations.empty());

  const auto facts = memprof::rows_of<memprof::heap_stacks>(memprof::profile_of(got.made).facts);
  REQUIRE(facts.size() == 1);
  CHECK(facts[0] == memprof::heap_stacks{0, 0, 1, "heaptrack"});
  const memprof::peak_callers callers = memprof::peak_callers_of(got.made, facts[0], 10);
  REQUIRE(callers.callers.size() == 2);
  CHECK(callers.callers[0] == memprof::caller_bytes{"work::keep<int> (app.cpp:9)", 200, 2, false, 0, 2});
  CHECK(callers.callers[1] == memprof::caller_bytes{"libx.so.6+0x14", 16, 1, false, 0, 1});
  CHECK(callers.bytes == 216);
}

TEST_CASE("heaptrack: stacks share what they begin with, whichever was there first", "[format]") {
  // 1 to 5 within each other; 6 and 7 branch off at 3, where nothing was allocated; 8 within 6.
  std::string text = recursion(5);
  for (const unsigned number : {6U, 7U, 8U}) text += numbers("i %x 1 2 1 %x\n", 0x1000 + number, number);
  text += "t 6 3\nt 7 3\nt 8 6\na 8 7\na 8 8\na 8 6\na 8 3\n+ 1\n+ 2\n+ 3\n+ 4\n";
  const stacked got{text};
  const texts outer = calls(1, 3);
  const auto with = [&](std::vector<unsigned> inner) {
    texts expected = outer;
    for (const unsigned number : inner) expected.push_back("f (app:" + std::to_string(number) + ")");
    return expected;
  };
  CHECK(got.texts_of(0) == calls(1, 5));
  CHECK(got.texts_of(1) == with({7}));
  CHECK(got.texts_of(2) == with({6, 8}));
  CHECK(got.texts_of(3) == with({6}));
  CHECK(got.texts_of(4) == outer);
  // Of the second stack, only what is not in the first is new.
  CHECK(got.names.text(got.allocations[1]).size() < got.names.text(got.allocations[0]).size() / 2);
}

TEST_CASE("heaptrack: of a deep stack the innermost 64 return addresses are kept", "[format]") {
  CHECK(stacked{recursion(64)}.texts_of(0) == calls(1, 64));
  CHECK(stacked{recursion(65)}.texts_of(0) == calls(2, 65));
  // One more within a cut stack, and the uncut ones around it.
  std::string text = recursion(300);
  text += "a 8 12b\na 8 40\na 8 41\n+ 1\n+ 2\n+ 3\n";
  const stacked got{text};
  CHECK(got.texts_of(0) == calls(237, 300));
  CHECK(got.texts_of(1) == calls(236, 299));
  CHECK(got.texts_of(2) == calls(1, 64));
  CHECK(got.texts_of(3) == calls(2, 65));
}

TEST_CASE("heaptrack: calls at unknown addresses are left out of a stack", "[format]") {
  const stacked got{"s /bin/app\ns f\ni 10 1 2\nt 1 0\nt 0 1\nt 0 0\nt 1 3\na 8 2\na 8 3\na 8 4\n+ 0\n+ 1\n+ 2\n"};
  CHECK(got.texts_of(0) == texts{"f"});
  CHECK(got.allocations[1] == 0);
  CHECK(got.texts_of(2) == texts{"f"});
}

TEST_CASE("heaptrack: addresses are those that calls return to, though since 1.3 heaptrack writes one less", "[format]") {
  const std::string lines = "i 1f 0\nt 1 0\na 8 1\n+ 0\n";
  CHECK(stacked{lines, "10200 2"}.texts_of(0) == texts{"0x1f"});
  CHECK(stacked{lines, "10300 3"}.texts_of(0) == texts{"0x20"});
  CHECK(stacked{lines, "10400 3"}.texts_of(0) == texts{"0x20"});
}

TEST_CASE("heaptrack: names with a separator stay one name, and lines beyond any file are cut", "[format]") {
  const stacked got{
      "s /bin/app\ns f\x1fg\ns a\x1f"
      "b.c\ni 10 1 2 3 ffffffffffff\nt 1 0\na 8 1\n+ 0\n"};
  CHECK(got.texts_of(0) == texts{"f g (a b.c:2147483647)"});
}

}  // namespace memprof_tests::format_heaptrack_stack_labels
