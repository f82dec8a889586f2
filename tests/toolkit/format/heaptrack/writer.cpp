#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/format/heaptrack/writer.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace memprof_tests::format_heaptrack_writer {

namespace {

memprof::extend::capture_info info_of(const char* command) {
  memprof::extend::capture_info info;
  info.process.command_line = command;
  return info;
}

struct written_trace {
  memprof::trace events;
  memprof::extend::trace_writer writer{events, info_of("./app --steps\n3")};
  memprof::extend::space_id cpu = writer.space("cpu");

  void allocate(std::uint64_t address, std::uint64_t bytes, const char* stack = nullptr) {
    const memprof::extend::label asked = stack == nullptr ? 0 : writer.label_of(stack);
    writer.put_event({0, address, bytes, asked, memprof::extend::event_kind::allocate, cpu.value, 0});
  }
  void free(std::uint64_t address) { writer.deallocate(cpu, memprof::extend::block_address{address}); }
  [[nodiscard]] std::string text(const char* space = "cpu") {
    memprof::text_sink sink;
    memprof::write_heaptrack(events, space, calls, sink);
    return sink.text;
  }

  /// In place of a symbolizer: the names of stacks are their calls.
  memprof::calls_of_stack calls = [](const memprof::detail::label_table& names, memprof::extend::label stack) {
    std::vector<std::vector<memprof::source_frame>> frames;
    const std::vector<memprof::source_frame> main{{"main", "/src/app.cpp", 15, "app", 0x1020}};
    if (names.text(stack) == "inlined")
      frames.push_back({{"void* keep<int>(unsigned long)", "/src/keep.hpp", 9, "app", 0x1010}, {"work()", "", 0, "app", 0x1010}});
    if (names.text(stack) == "nameless") frames.push_back({{"", "", 0, "libx.so", 0x30}});
    if (names.text(stack) == "symbol") frames.push_back({{"f\tg(int)", "", 0, "libx.so", 0x40}});
    frames.push_back(main);
    return frames;
  };
};

}  // namespace

TEST_CASE("heaptrack: a trace is written with its stacks, each text, call, stack and kind of block once", "[format]") {
  written_trace run;
  run.writer.at(1'999'999);
  run.allocate(0x1000, 100, "inlined");
  run.allocate(0x2000, 100, "inlined");
  run.writer.at(10'000'000);
  run.allocate(0x3000, 16, "nameless");
  run.free(0x1000);
  run.writer.at(30'500'000);
  run.allocate(0x4000, 16, "symbol");
  run.allocate(0x5000, 8);
  run.writer.at(32'000'000);
  run.writer.finish();
  CHECK(run.text() ==
        "v 10000 1\n"
        "X ./app --steps 3\n"
        "c 1\n"
        "s app\n"           // 1
        "s main\n"          // 2
        "s /src/app.cpp\n"  // 3
        "i 1020 1 2 3 f\n"
        "t 1 0\n"
        "s void* keep<int>(unsigned long)\n"  // 4
        "s /src/keep.hpp\n"                   // 5
        "s work()\n"                          // 6
        "i 1010 1 4 5 9 6 0 0\n"
        "t 2 1\n"
        "a 64 2\n"
        "+ 0\n"
        "+ 0\n"
        "c a\n"
        "s libx.so\n"  // 7
        "i 30 7\n"
        "t 3 1\n"
        "a 10 3\n"
        "+ 1\n"
        "- 0\n"
        "c 1e\n"
        "s f g(int)\n"  // 8
        "i 40 7 8\n"
        "t 4 1\n"
        "a 10 4\n"
        "+ 2\n"
        "a 8 0\n"
        "+ 3\n"
        "c 20\n"
        "# strings: 8\n"
        "# ips: 4\n");
}

TEST_CASE("heaptrack: operations are functions around the calls", "[format]") {
  written_trace run;
  const memprof::extend::open_operation step = run.writer.begin_operation("step");
  run.allocate(0x1000, 8, "main");
  const memprof::extend::open_operation inner = run.writer.begin_operation("forward");
  run.allocate(0x2000, 8);
  run.writer.end_operation(inner);
  run.writer.end_operation(step);
  run.writer.finish();
  CHECK(run.text() ==
        "v 10000 1\nX ./app --steps 3\n"
        "s step\ni 0 0 1\nt 1 0\ns app\ns main\ns /src/app.cpp\ni 1020 2 3 4 f\nt 2 1\na 8 2\n+ 0\n"
        "s forward\ni 0 0 5\nt 3 1\na 8 3\n+ 1\n"
        "# strings: 5\n# ips: 3\n");
}

TEST_CASE("heaptrack: only the space that is asked for is written, and nothing is a recording, too", "[format]") {
  written_trace run;
  const memprof::extend::space_id gpu = run.writer.space("cuda:0");
  run.allocate(0x1000, 8, "main");
  run.writer.allocate(gpu, memprof::extend::block_address{0x1000}, 4096);
  run.writer.deallocate(gpu, memprof::extend::block_address{0x1000});
  run.writer.finish();
  CHECK(run.text("cuda:0") == "v 10000 1\nX ./app --steps 3\na 1000 0\n+ 0\n- 0\n# strings: 0\n# ips: 0\n");
  CHECK(run.text("other") == "v 10000 1\nX ./app --steps 3\n# strings: 0\n# ips: 0\n");
}

TEST_CASE("heaptrack: what is written is read back with the same numbers, whatever the order of blocks", "[format]") {
  written_trace run;
  constexpr const char* stacks[] = {"inlined", "nameless", "symbol", nullptr};
  std::uint32_t random = 7;
  const auto next = [&random](std::uint32_t below) { return (random = random * 1664525U + 1013904223U) >> 8U & (below - 1); };
  std::vector<std::uint64_t> live;
  for (std::uint64_t step = 1; step <= 2000; ++step) {
    run.writer.at(static_cast<std::int64_t>(step) * 300'000);
    if (next(8) < 5 || live.empty()) {
      run.allocate(step << 12U, next(4) * 24, stacks[next(4)]);
      live.push_back(step << 12U);
    } else {
      const std::size_t which = next(1U << 16U) % live.size();
      run.free(live[which]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  run.writer.finish();
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("run.heaptrack");
  std::ofstream{path, std::ios::binary} << run.text();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), &std::fclose};
  CHECK(memprof::is_heaptrack(file.get()));
  memprof::heaptrack_source source{file.get(), path};
  memprof::trace again;
  memprof::extend::trace_writer writer{again, source.info()};
  source.write_to(writer);
  writer.finish();
  CHECK(source.damage().empty());
  const memprof::profile before_profile = memprof::profile_of(run.events);
  const memprof::profile after_profile = memprof::profile_of(again);
  const memprof::space_profile& before = before_profile.space("cpu");
  const memprof::space_profile& after = after_profile.space("cpu");
  CHECK(before.allocation_count > 1000);
  CHECK(after.cumulative_peak == before.cumulative_peak);
  CHECK(after.cumulative_current == before.cumulative_current);
  CHECK(after.allocations == before.allocations);
  CHECK(after.allocation_count == before.allocation_count);
  CHECK(after.anomalies == memprof::space_anomalies{});
  CHECK(after_profile.process.command_line == "./app --steps 3");
  CHECK(after_profile.duration_ns == 600'000'000);
}

}  // namespace memprof_tests::format_heaptrack_writer
