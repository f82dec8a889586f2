#include <memprof/toolkit/symbols/named_stacks.hpp>

#include <memprof/toolkit/symbols/call_stacks.hpp>
#include <memprof/toolkit/symbols/symbolizer.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <dlfcn.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::symbols_named_stacks {

using memprof::call_stacks;
using memprof::caller_of;
using memprof::named_stacks;
using memprof::source_frame;
using memprof::symbolizer;
using memprof::detail::label_table;
using memprof::detail::module_text;
using memprof::detail::stack_frame;
using memprof::detail::stack_text;
using memprof::extend::label;

source_frame call(std::string function, std::string file = {}, int line = 0) {
  return {std::move(function), std::move(file), line, "program", 0x1234};
}

label stack_of(label_table& names, label outer, std::size_t shared, const std::vector<stack_frame>& frames,
               memprof::detail::stack_part inner = {}) {
  stack_text text{{outer, shared}, inner};
  for (const stack_frame& frame : frames) text.add(frame);
  return names.intern(text.view());
}

TEST_CASE("named_stacks: who asked is the first function of no library, with the library's that it called") {
  CHECK(caller_of({call("std::vector<double, std::allocator<double> >::_M_realloc_insert(int)"),
                   call("std::vector<double>::emplace_back(double&&)"), call("train(int)", "/src/model.cpp", 42),
                   call("main")}) == "std::vector<double>::emplace_back in train (model.cpp:42)");
  CHECK(caller_of({call("train(int)", "/src/model.cpp", 42), call("main")}) == "train (model.cpp:42)");
  CHECK(caller_of({call("train")}) == "train");
  CHECK(caller_of({call("")}) == "program+0x1234");
  CHECK(caller_of({call("std::string::reserve(unsigned long)")}) == "std::string::reserve");
  CHECK(caller_of({}).empty());
  source_frame of_library = call("getline");
  of_library.module = "libc.so.6";
  CHECK(caller_of({of_library, call("read_lines")}) == "getline in read_lines");
}

TEST_CASE("named_stacks: in Python, who asked is the first function neither of torch nor of Python's own library") {
  const auto in_python = [](std::string function, std::string file, int line) {
    return source_frame{std::move(function), std::move(file), line, "", static_cast<std::uint64_t>(line)};
  };
  const source_frame linear = in_python("Linear.forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125);
  const source_frame decode = in_python("Decoder.decode", "/usr/lib/python3.11/json/decoder.py", 337);
  const source_frame frozen = in_python("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241);
  const source_frame model = in_python("Block.forward", "/home/me/model.py", 9);
  const source_frame installed =
      in_python("Attention.forward", "/venv/lib/python3.11/site-packages/transformers/models/gpt2.py", 7);
  const source_frame script = in_python("<module>", "train.py", 42);
  CHECK(caller_of({linear, model, script}) == "Block.forward (model.py:9)");
  CHECK(caller_of({linear, decode, frozen, script}) == "<module> (train.py:42)");
  CHECK(caller_of({linear, installed, script}) == "Attention.forward (gpt2.py:7)");
  CHECK(caller_of({in_python("f", "<string>", 1), script}) == "f (<string>:1)");
  CHECK(caller_of({linear, decode}) == "Linear.forward (linear.py:125)");
}

TEST_CASE("named_stacks: a stack has the outer frames of an earlier one") {
  label_table names;
  const label first = stack_of(names, 0, 0, {{0, 10}, {0, 20}, {0, 30}});
  const label second = stack_of(names, first, 2, {{0, 40}});
  const label third = stack_of(names, second, 3, {});
  call_stacks stacks{names};
  CHECK(stacks.frames(third) == std::vector<stack_frame>{{0, 10}, {0, 20}, {0, 40}});
  CHECK(stacks.frames(second) == std::vector<stack_frame>{{0, 10}, {0, 20}, {0, 40}});
  CHECK(stacks.frames(first) == std::vector<stack_frame>{{0, 10}, {0, 20}, {0, 30}});
}

TEST_CASE("named_stacks: a stack has the inner frames of another one, too") {
  label_table names;
  const label first = stack_of(names, 0, 0, {{0, 10}, {0, 20}, {0, 30}, {0, 40}});
  const label second = stack_of(names, first, 1, {{0, 50}}, {first, 2});
  const label third = stack_of(names, second, 2, {}, {second, 3});
  call_stacks stacks{names};
  CHECK(stacks.frames(third) == std::vector<stack_frame>{{0, 10}, {0, 50}, {0, 50}, {0, 30}, {0, 40}});
  CHECK(stacks.frames(second) == std::vector<stack_frame>{{0, 10}, {0, 50}, {0, 30}, {0, 40}});
}

TEST_CASE("named_stacks: inner frames of a later stack, or more than it has, are not taken") {
  label_table names;
  const label first = stack_of(names, 0, 0, {{0, 10}, {0, 20}});
  const label more = stack_of(names, 0, 0, {{0, 30}}, {first, 9});
  const label later = stack_of(names, 0, 0, {{0, 30}}, {9, 1});
  const label many = stack_of(names, first, 2, std::vector<stack_frame>(60, {0, 30}), {more, 3});
  call_stacks stacks{names};
  CHECK(stacks.frames(more) == std::vector<stack_frame>{{0, 30}, {0, 10}, {0, 20}});
  CHECK(stacks.frames(later) == std::vector<stack_frame>{{0, 30}});
  CHECK(stacks.frames(many).size() == memprof::detail::max_stack_frames);
}

TEST_CASE("named_stacks: names that are no stacks, or damaged ones, have no frames, and none is followed in a circle") {
  label_table names;
  const label text = names.intern("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  const label itself = names.intern(stack_text{{2, 5}}.view());
  const label later = names.intern(stack_text{{4, 1}}.view());
  const label back = names.intern(stack_text{{3, 2}}.view());
  CHECK(itself == 2);
  call_stacks stacks{names};
  for (const label each : {label{0}, text, itself, later, back, label{99}}) CHECK(stacks.frames(each).empty());
}

TEST_CASE("named_stacks: the hook's own calls are cut") {
  label_table names;
  const label hook = names.intern(
      "/no/such/libmemprof_preload.so\x1f\x1f"
      "0");
  const label program = names.intern(
      "/no/such/program\x1f\x1f"
      "0");
  const label stack = stack_of(names, 0, 0, {{program, 0x20}, {program, 0x10}, {hook, 0x50}, {hook, 0x40}});
  named_stacks stacks{names};
  CHECK(stacks.texts(stack) == std::vector<std::string>{"program+0x20", "program+0x10"});
  CHECK(stacks.caller(stack) == "program+0x10");
  CHECK(stacks.caller(0).empty());
}

/// A module whose frame has its calls with it.
label module_with(label_table& names, const std::string& path, const std::string& calls) {
  std::string text = path + "|||" + calls;
  std::replace(text.begin(), text.end(), '|', '\x1f');
  return names.intern(text);
}

TEST_CASE("named_stacks: calls that another program has named are taken as they are, and no file is asked") {
  label_table names;
  const label inlined = module_with(names, "/bin/app", "inner(int)|/src/inner.cpp|7|outer()|/src/outer.cpp|12");
  const label plain = module_with(names, "/bin/app", "main||0");
  const label bare = module_with(names, "/lib/libx.so", "?\?|libx.so|0");
  const label allocates = module_with(names, "/lib/libc.so.6", "operator new(unsigned long)||0");
  const label stack = stack_of(names, 0, 0, {{plain, 1}, {bare, 2}, {inlined, 3}, {allocates, 4}});
  named_stacks stacks{names};
  CHECK(stacks.texts(stack) == std::vector<std::string>{"main", "?\? (libx.so)", "outer (outer.cpp:12)", "inner (inner.cpp:7)"});
  CHECK(stacks.caller(stack) == "inner (inner.cpp:7)");
  const std::vector<std::vector<source_frame>> frames = stacks.frames(stack);
  REQUIRE(frames.size() == 3);
  CHECK(frames[0] ==
        std::vector<source_frame>{{"inner(int)", "/src/inner.cpp", 7, "app", 3}, {"outer()", "/src/outer.cpp", 12, "app", 3}});
  CHECK(frames[2] == std::vector<source_frame>{{"main", "", 0, "app", 1}});
  // What is damaged is read as far as it goes.
  const label damaged =
      stack_of(names, 0, 0, {{module_with(names, "/bin/app", "f|x.cpp|12z"), 1}, {module_with(names, "/bin/app", "g"), 1}});
  CHECK(stacks.texts(damaged) == std::vector<std::string>{"f (x.cpp:12)", "g"});
}

TEST_CASE("named_stacks: frames without a name that lead to an allocation function of their file are the hook's") {
  label_table names;
  const label hook = module_with(names, "/bin/app", "||0");
  const label allocates = module_with(names, "/bin/app", "operator new[](unsigned long)||0");
  const label user = module_with(names, "/bin/app", "grow()||0");
  const label other = module_with(names, "/lib/libx.so", "||0");
  const label shim = module_with(names, "/bin/app", "fill()||0");
  named_stacks stacks{names};
  const auto texts = [&](const std::vector<stack_frame>& frames) { return stacks.texts(stack_of(names, 0, 0, frames)); };
  CHECK(texts({{user, 1}, {allocates, 2}, {hook, 3}, {hook, 4}}) == std::vector<std::string>{"grow"});
  CHECK(texts({{user, 1}, {shim, 2}, {hook, 3}}) == std::vector<std::string>{"grow", "fill", "app+0x3"});
  CHECK(texts({{user, 1}, {allocates, 2}, {other, 3}}) == std::vector<std::string>{"grow", "operator new[]", "libx.so+0x3"});
  CHECK(texts({{user, 1}, {hook, 3}}) == std::vector<std::string>{"grow", "app+0x3"});
}

}  // namespace memprof_tests::symbols_named_stacks

/// Stands for a template of the hook: its symbol begins with what it returns, as `void* memprof::hook_of_test::ask<int>(int*)`.
namespace memprof::hook_of_test {
template <class Value>
[[gnu::noinline, gnu::visibility("default")]] void* ask(Value* value) {
  return ++value;
}
template void* ask<int>(int*);
}  // namespace memprof::hook_of_test

namespace memprof_tests::symbols_named_stacks {

/// A program's: `memprof::source_frame* memprof_tests::...::ask_for_frame<int>(int*)`.
template <class Value>
[[gnu::noinline, gnu::visibility("default")]] memprof::source_frame* ask_for_frame(Value* value) {
  return reinterpret_cast<memprof::source_frame*>(++value);
}
template memprof::source_frame* ask_for_frame<int>(int*);

TEST_CASE("named_stacks: templates of the hook are cut, too, and functions that only return what is memprof's are not") {
  const auto offset_of = [](auto* function) {
    Dl_info loaded{};
    REQUIRE(::dladdr(reinterpret_cast<void*>(function), &loaded) != 0);
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(function) -
                                      reinterpret_cast<std::uintptr_t>(loaded.dli_fbase));
  };
  label_table names;
  const label program = names.intern(std::filesystem::read_symlink("/proc/self/exe").string() + "\x1f\x1f" + "0");
  const std::uint64_t hook = offset_of(&memprof::hook_of_test::ask<int>) + 1;
  const std::uint64_t user = offset_of(&ask_for_frame<int>) + 1;
  const label stack = stack_of(names, 0, 0, {{program, user}, {program, hook}});
  named_stacks stacks{names};
  REQUIRE(stacks.texts(stack).size() == 1);
  CHECK_THAT(stacks.caller(stack), Catch::Matchers::ContainsSubstring("ask_for_frame"));
}

extern "C" [[gnu::noinline, gnu::visibility("default")]] int memprof_test_of_symbols(int value) { return value * 3 + 1; }

/// Its name is that of the type `void*`, mangled, as `f` is that of `float`.
extern "C" [[gnu::noinline, gnu::visibility("default")]] int Pv(int value) { return value * 5 + 1; }

TEST_CASE("named_stacks: a function of C is not named after the type that its name would be in C++") {
  const auto address = reinterpret_cast<std::uintptr_t>(&Pv);
  Dl_info loaded{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(address), &loaded) != 0);
  symbolizer symbols;
  const source_frame found = symbols
                                 .calls_at({std::filesystem::read_symlink("/proc/self/exe").string(), "", ""},
                                           address - reinterpret_cast<std::uintptr_t>(loaded.dli_fbase) + 1)
                                 .back();
  CHECK(found.function == "Pv");
}

TEST_CASE("named_stacks: a function of a file has its name, but not in a file with another build-id, nor beyond any function") {
  const auto address = reinterpret_cast<std::uintptr_t>(&memprof_test_of_symbols);
  Dl_info loaded{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(address), &loaded) != 0);
  const std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  symbolizer symbols;
  // One byte in, as where a call within it returns to.
  const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(loaded.dli_fbase) + 1;
  const source_frame found = symbols.calls_at({path, "", ""}, offset).back();
  CHECK(found.function == "memprof_test_of_symbols");
  CHECK(found.module == std::filesystem::path{path}.filename().string());
  CHECK(symbols.calls_at({path, "", ""}, std::uint64_t{1} << 40).back().function.empty());
  const source_frame missing = symbols.calls_at({"/no/such/library.so", "", ""}, 0x40).front();
  CHECK(missing == source_frame{"", "", 0, "library.so", 0x40});
  CHECK(to_text(missing) == "library.so+0x40");
}

TEST_CASE("named_stacks: a file with another build-id is another one") {
  Dl_info loaded{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&::getenv), &loaded) != 0);
  const std::string path = std::filesystem::canonical(loaded.dli_fname).string();
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "getenv")) - reinterpret_cast<std::uintptr_t>(loaded.dli_fbase) + 1;
  symbolizer symbols;
  CHECK_FALSE(symbols.calls_at({path, "", ""}, offset).back().function.empty());
  CHECK(symbols.calls_at({path, "0123456789abcdef", ""}, offset).back().function.empty());
}

}  // namespace memprof_tests::symbols_named_stacks
