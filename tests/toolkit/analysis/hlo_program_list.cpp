#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace memprof_tests::format_hlo_program_list {

using Catch::Matchers::ContainsSubstring;
using message = memprof::detail::protobuf_message;

namespace {

/// A program with one temporary of that size, in a memory space.
message program(const std::string& name, std::int64_t bytes, std::int64_t space = 0) {
  message instruction;
  instruction.text(1, "fusion")
      .text(2, "fusion")
      .message(3, message{}.integer(2, std::uint64_t{11}))
      .integer(35, std::uint64_t{1});
  message module;
  module.text(1, name).message(3, message{}.message(2, instruction));
  message buffer;
  buffer.integer(1, std::uint64_t{1}).integer(2, bytes).message(3, message{}.integer(4, std::uint64_t{1})).integer(4, space);
  message allocation;
  allocation.integer(1, std::uint64_t{1}).integer(2, bytes).integer(8, space);
  allocation.message(9, message{}.integer(1, std::uint64_t{1}).integer(3, bytes));
  message trace;
  trace.message(1, message{}.integer(2, std::uint64_t{1}))
      .message(1, message{}.integer(1, std::uint64_t{1}).integer(2, std::uint64_t{1}));
  message assignment;
  assignment.message(1, buffer).message(3, allocation).message(4, trace);
  return message{}.message(1, module).message(3, assignment);
}

message entry(std::int64_t key, const message& value) { return message{}.integer(1, key).message(2, value); }

/// A profile with numbered programs, and how often the TPU ran those numbers, in that order.
message profile(const std::vector<message>& programs, const std::vector<std::int64_t>& runs,
                const std::vector<std::string>& names) {
  message metadata;
  metadata.text(2, "/host:metadata").message(5, entry(7, message{}.text(2, "Hlo Proto")));
  message line;
  line.text(2, "XLA Modules");
  for (const std::int64_t run : runs) line.message(4, message{}.integer(1, run));
  message tpu;
  tpu.text(2, "/device:TPU:0").message(3, line);
  for (std::size_t index = 0; index < programs.size(); ++index) {
    const auto key = static_cast<std::int64_t>(index) + 1;
    const message stat = message{}.integer(1, std::uint64_t{7}).message(6, programs[index]);
    metadata.message(4, entry(key, message{}.integer(1, key).text(2, names[index]).message(5, stat)));
    tpu.message(4, entry(key, message{}.text(2, names[index])));
  }
  return message{}.message(1, metadata).message(1, tpu);
}

class written_profile {
 public:
  explicit written_profile(const message& content) { std::ofstream{path(), std::ios::binary} << content.bytes(); }

  [[nodiscard]] memprof::xplane_file read() const {
    const memprof::detail::file_handle file{std::fopen(path().c_str(), "rb")};
    return memprof::xplane_file{file.get(), path()};
  }

 private:
  [[nodiscard]] std::string path() const { return folder_.file("worker.xplane.pb"); }

  memprof_tests::scratch_folder folder_;
};

}  // namespace

TEST_CASE("xla programs: those of all workers, with their runs and the need of the worker that needs most") {
  const written_profile first{profile({program("jit_f", 100), program("jit_g", 300)}, {1, 2, 1}, {"jit_f(1)", "jit_g(2)"})};
  const written_profile second{profile({program("jit_f", 500)}, {1}, {"jit_f(1)"})};
  memprof::hlo_program_list list{0};
  CHECK(list.add(first.read()).empty());
  REQUIRE(list.programs().size() == 2);
  CHECK(list.programs()[0].name == "jit_g(2)");
  CHECK(list.add(second.read()).empty());
  const std::vector<memprof::hlo_listed_program> programs = list.programs();
  REQUIRE(programs.size() == 2);
  CHECK(programs[0].name == "jit_f(1)");
  CHECK(programs[0].workers == 2);
  CHECK(programs[0].runs == 3);
  CHECK(programs[0].greatest.peak == 500);
  CHECK(programs[1].workers == 1);
  CHECK(programs[1].runs == 1);
  CHECK(programs[1].greatest.peak == 300);
  CHECK(list.spaces() == std::vector<std::int64_t>{0});
}

TEST_CASE("xla programs: another memory space has other peaks") {
  const written_profile worker{profile({program("jit_f", 100), program("jit_g", 300, 1)}, {}, {"jit_f(1)", "jit_g(2)"})};
  memprof::hlo_program_list list{1};
  CHECK(list.add(worker.read()).empty());
  REQUIRE(list.programs().size() == 2);
  CHECK(list.programs()[0].name == "jit_g(2)");
  CHECK(list.programs()[0].greatest.peak == 300);
  CHECK(list.programs()[1].greatest.peak == 0);
  CHECK(list.spaces() == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("xla programs: one that cannot be read is named, and the others are listed") {
  const message broken = message{}.message(1, message{}.text(1, "jit_f")).message(3, message{}.integer(1, std::uint64_t{1}));
  const written_profile worker{profile({broken, program("jit_g", 300)}, {}, {"jit_f(1)", "jit_g(2)"})};
  memprof::hlo_program_list list{0};
  const std::vector<std::string> faults = list.add(worker.read());
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0],
             ContainsSubstring("worker.xplane.pb': jit_f(1): byte ") && ContainsSubstring("is not a string or a message"));
  REQUIRE(list.programs().size() == 1);
  CHECK(list.programs()[0].name == "jit_g(2)");
}

TEST_CASE("xla programs: of several of one name, that which ran first is meant, else the first") {
  const std::vector<message> programs{program("jit_f", 100), program("jit_f", 200), program("jit_g", 300)};
  const std::vector<std::string> names{"jit_f(1)", "jit_f(2)", "jit_g(3)"};
  const auto name_of = [](const memprof::found_program& found) { return found.program == nullptr ? "" : found.program->name; };
  const written_profile ran{profile(programs, {3, 2, 1}, names)};
  const memprof::xplane_file read = ran.read();
  CHECK(name_of(find_program(read, "jit_f")) == "jit_f(2)");
  CHECK(find_program(read, "jit_f").candidates == 2);
  CHECK(name_of(find_program(read, "jit_f(1)")) == "jit_f(1)");
  CHECK(find_program(read, "jit_f(1)").candidates == 1);
  CHECK(find_program(read, "jit_h").program == nullptr);
  CHECK(find_program(read, "jit_h").candidates == 0);
  const written_profile idle{profile(programs, {}, names)};
  const memprof::xplane_file unrun = idle.read();
  CHECK(name_of(find_program(unrun, "jit_f")) == "jit_f(1)");
}

}  // namespace memprof_tests::format_hlo_program_list
