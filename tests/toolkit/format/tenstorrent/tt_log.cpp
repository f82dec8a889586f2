#include <memprof/detail/error.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_survey.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests::format_tt_log {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::tt_memory_view;

namespace {

TEST_CASE("tt log: the view of a memory has five numbers, in any order, or is none") {
  using memprof::detail::parse_tt_memory_view;
  const std::string head = "Device L1 memory state: MemoryView{";
  const auto view = parse_tt_memory_view(
      head +
      "totalBytesFreePerBank: 1.056 MB, numBanks: 64, totalBytesPerBank: 1.306 MB, largestContiguousBytesFreePerBank: 1 MB, "
      "totalBytesAllocatedPerBank: 0.250 MB}");
  CHECK(view == tt_memory_view{64, 1.306, 0.25, 1.056, 1, 1});  // the last has no decimals
  CHECK_FALSE(parse_tt_memory_view(head + "numBanks: 64, totalBytesPerBank: 1.306 MB}"));
  CHECK_FALSE(parse_tt_memory_view(head + "numBanks: -1, totalBytesPerBank: 1 MB, totalBytesAllocatedPerBank: 1 MB, "
                                          "totalBytesFreePerBank: 1 MB, largestContiguousBytesFreePerBank: 1 MB}"));
  CHECK_FALSE(parse_tt_memory_view(head + "numBanks: 1, totalBytesPerBank: nan MB, totalBytesAllocatedPerBank: 1 MB, "
                                          "totalBytesFreePerBank: 1 MB, largestContiguousBytesFreePerBank: 1 MB}"));
  CHECK_FALSE(parse_tt_memory_view(head + "numBanks"));
  for (const char* number : {"-0.5", "nan", "inf", "1e300", "1e3", "0x10", "1.2.3", ".5", "1.", "+1", "1,5", ""}) {
    const std::string fields = "totalBytesPerBank: 2 MB, totalBytesFreePerBank: 1 MB, largestContiguousBytesFreePerBank: 1 MB}";
    INFO(number);
    CHECK(parse_tt_memory_view(head + "numBanks: 1, totalBytesAllocatedPerBank: " + number + " MB, " + fields).has_value() ==
          (std::string{number} == "1."));
  }
}

TEST_CASE("tt log: numbers that no device has are told from those of rounding") {
  using memprof::detail::impossibility_of;
  CHECK(impossibility_of({12, 1024, 1000, 24, 24, 0.001}).empty());
  CHECK(impossibility_of({12, 1024, 1000.0005, 24.0005, 24.001, 0.001}).empty());
  CHECK(impossibility_of({0, 0, 0, 0, 0, 0.001}).empty());  // a memory that is not there
  CHECK(impossibility_of({12, 0, 0, 0, 0, 0.001}).empty());
  CHECK_THAT(std::string{impossibility_of({0, 1024, 0, 1024, 1024, 0.001})}, ContainsSubstring("no banks"));
  CHECK_THAT(std::string{impossibility_of({12, 1024, 1024.01, 0, 0, 0.001})}, ContainsSubstring("more is allocated"));
  CHECK_THAT(std::string{impossibility_of({12, 1024, 0, 1024.01, 0, 0.001})}, ContainsSubstring("more is free"));
  CHECK_THAT(std::string{impossibility_of({12, 1024, 0, 24, 25, 0.001})}, ContainsSubstring("largest free block"));
  CHECK_THAT(std::string{impossibility_of({12, 1024, 600, 600, 600, 0.001})}, ContainsSubstring("allocated and free bytes"));
  CHECK_FALSE(impossibility_of({65'537, 1, 0, 1, 1, 0.001}).empty());
  CHECK_FALSE(impossibility_of({1, 0x1p25, 0, 1, 1, 0.001}).empty());
}

TEST_CASE("tt log: real out-of-memory messages have their numbers") {
  using memprof::detail::parse_tt_out_of_memory;
  const auto full = parse_tt_out_of_memory(
      "Out of Memory: Not enough space to allocate 4294967296 B DRAM buffer across 12 banks, where each bank needs to store "
      "357916672 B, "
      "but bank size is 1071821792 B (allocated: 527808576 B, free: 544013216 B, largest free block: 306904160 B) "
      "(assert.hpp:104)");
  CHECK(full == memprof::tt_out_of_memory{0, 4294967296, 12, 357916672, 1071821792, 527808576, 544013216, 306904160});
  const auto brief = parse_tt_out_of_memory(
      "Not enough space to allocate 10485760 B L1_SMALL buffer across 12 banks, where each bank needs to store 876544 B");
  CHECK(brief == memprof::tt_out_of_memory{2, 10485760, 12, 876544, -1, -1, -1, -1});
  CHECK_FALSE(parse_tt_out_of_memory("Not enough space to allocate"));
  CHECK_FALSE(parse_tt_out_of_memory(
      "Not enough space to allocate 99999999999999999999 B DRAM buffer across 12 banks, where each bank needs to store 1 B"));
}

TEST_CASE("tt log: labels of Open MPI are those of a rank, other brackets are text") {
  using memprof::detail::mpi_label_of;
  CHECK(mpi_label_of("[1,0]<stdout>: text").rank == "0");
  CHECK(mpi_label_of("[1,0]<stdout>: text").length == 15);
  CHECK(mpi_label_of("[1,12]<stderr>:text").rank == "12");
  for (const char* text : {"", "[", "[1", "[1,", "[1,2]", "[1,2] text", "[a,2]<stdout>:", "1,2]<stdout>:"})
    CHECK(mpi_label_of(text).length == 0);
}

TEST_CASE("tt log: fragmentation is what of the free bytes is not in the largest block") {
  CHECK(memprof::tt_fragmentation(900, 1000) == 1 - 0.9);
  CHECK(memprof::tt_fragmentation(1000, 1000) == 0);
  CHECK(memprof::tt_fragmentation(0, 0) == 0);
  CHECK(memprof::tt_fragmentation(2000, 1000) == 0);  // rounding
}

TEST_CASE("tt log: fragmentation over time keeps the greatest of each stretch, in bounded memory") {
  memprof::detail::fragmentation_line line;
  for (std::int64_t state = 0; state < 100'000; ++state)
    line.add({"dram", state, state, 0, 0, 0, state == 77'777 ? 0.9 : static_cast<double>(state % 7) / 10});
  CHECK(line.points().size() <= memprof::detail::fragmentation_line::max_points);
  CHECK(line.points().size() >= memprof::detail::fragmentation_line::max_points / 4);
  int greatest = 0;
  for (const memprof::tt_fragmentation_fact& point : line.points())
    greatest += point.fragmentation == 0.9 && point.line == 77'777;
  CHECK(greatest == 1);
}

TEST_CASE("tt log: a decrease frees the tensor's own block, then an equal one, then the newest in part") {
  using block = memprof::detail::tt_blocks::block;
  memprof::detail::tt_blocks blocks;
  blocks.add({0, 1000, 10, "main %0"});
  blocks.add({1, 2000, 20, "main %1"});
  blocks.add({2, 3000, 30, "main %2"});
  std::vector<std::pair<std::uint64_t, std::int64_t>> freed;
  const auto note = [&](const block& from, std::int64_t part) { freed.emplace_back(from.address, part); };
  blocks.remove(12, {"main %0"}, note);
  CHECK(freed == std::vector<std::pair<std::uint64_t, std::int64_t>>{{1000, 10}, {3000, 2}});
  freed.clear();
  blocks.remove(20, {}, note);
  CHECK(freed == std::vector<std::pair<std::uint64_t, std::int64_t>>{{2000, 20}});
  freed.clear();
  blocks.remove(100, {}, note);  // more than there is
  CHECK(freed == std::vector<std::pair<std::uint64_t, std::int64_t>>{{3002, 28}});
}

TEST_CASE("tt log: sizes of element types") {
  for (const auto& [type, bytes] : std::vector<std::pair<std::string, int>>{{"bf16", 2},
                                                                            {"f16", 2},
                                                                            {"f32", 4},
                                                                            {"f64", 8},
                                                                            {"i1", 1},
                                                                            {"i8", 1},
                                                                            {"si8", 1},
                                                                            {"ui16", 2},
                                                                            {"ui64", 8},
                                                                            {"bool", 1},
                                                                            {"f8E4M3FN", 1},
                                                                            {"i32", 4},
                                                                            {"!quant", 4},
                                                                            {"", 4}})
    CHECK(memprof::bytes_of_mlir_type(type) == bytes);
}

/// A state with so many MiB of DRAM in each of two banks.
std::string state(const std::string& header, const std::string& allocated) {
  return header +
         "\nDevice DRAM memory state: MemoryView{numBanks: 2, totalBytesPerBank: 64.000 MB, totalBytesAllocatedPerBank: " +
         allocated + " MB, totalBytesFreePerBank: 8.000 MB, largestContiguousBytesFreePerBank: 2.000 MB}\n";
}
std::string operation(const std::string& text, const std::string& allocated) {
  return "RuntimeTTNN | DEBUG | Executing operation: " + text + "\n" +
         state("Device memory state before operation AnOp", allocated);
}

struct tt_reading {
  memprof::profile profile;
  std::vector<std::string> remarks;
  std::string damage;
};

tt_reading read(const std::string& text) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("run.log");
  std::ofstream{path, std::ios::binary} << text;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  memprof::trace made;
  memprof::tt_log_source source{file.get(), path};
  memprof::extend::trace_writer writer{made, memprof::tt_log_source::info()};
  writer.finish(source.write_to(writer));
  return {memprof::profile_of(made), memprof::remarks_on(source), source.status().damage};
}

TEST_CASE("tt log: a block that is freed in parts is as many blocks, and sums stay those of the log") {
  const tt_reading got =
      read(operation(R"(%1 = "ttnn.a"() : () -> tensor<2x3xbf16> loc("a"))", "1.000") +
           operation(R"(%2 = "ttnn.b"() : () -> i32)", "9.000") + operation(R"(%3 = "ttnn.c"() : () -> i32)", "6.000") +
           operation(R"("ttnn.deallocate"(%1) : () -> ())", "4.000") + operation(R"("ttnn.d"() : () -> ())", "4.000"));
  REQUIRE(got.profile.spaces.size() == 1);
  const memprof::space_profile& dram = got.profile.spaces[0];
  constexpr std::int64_t mebibyte = 2 << 20;  // of two banks
  CHECK(dram.name == "dram");
  CHECK(dram.capacity == 64 * mebibyte);
  CHECK(dram.allocations == 9 * mebibyte);
  CHECK(dram.deallocations == 5 * mebibyte);
  CHECK(dram.cumulative_peak == 9 * mebibyte);
  CHECK(dram.cumulative_current == 4 * mebibyte);
  CHECK(dram.allocation_count == 1 + 3);
  CHECK(dram.anomalies.mismatched_sizes.count == 0);
  CHECK(dram.anomalies.unmatched_frees.count == 0);
  CHECK(dram.live_at_peak.largest_blocks.front().shape == "[2, 3]");
  CHECK(dram.live_at_peak.largest_blocks.front().name == "a");
  CHECK(dram.live_at_peak.largest_blocks.front().dtype == "bf16");
  REQUIRE(got.remarks.size() == 1);
  CHECK_THAT(got.remarks[0], ContainsSubstring("what ttnn.d allocated is unknown: line 13"));
}

TEST_CASE("tt log: without states it is an error that says what to set") {
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  CHECK_THROWS_MATCHES(read(""), memprof::error, says("run.log': expected memory states"));
  CHECK_THROWS_MATCHES(read("RuntimeTTNN | Executing operation: \"a.b\"()\n"), memprof::error,
                       says("('a.b' in line 1), but no state before any; set TT_RUNTIME_MEMORY_LOG_LEVEL=operation"));
  std::string impossible = operation("\"a.b\"()", "1.000");
  impossible.replace(impossible.find("64.000"), 6, "99999999999.0");
  CHECK_THROWS_MATCHES(read(impossible), memprof::error,
                       says("line 3: impossible numbers for DRAM: a bank has more than 16 TiB"));
}

TEST_CASE("tt log: a state that no device has is left out and said, and the numbers are not exact") {
  std::string text = operation("\"a.b\"()", "1.000") + operation("\"a.c\"()", "99.000") + operation("\"a.d\"()", "2.000");
  for (const auto& [numbers, fault] :
       std::vector<std::pair<std::string, std::string>>{{"99.000", "more is allocated than the total"},
                                                        {"-0.5", "five numbers"},
                                                        {"nan", "five numbers"},
                                                        {"1e300", "five numbers"}}) {
    std::string changed = text;
    changed.replace(changed.find("99.000"), 6, numbers);
    const tt_reading got = read(changed);
    INFO(numbers);
    CHECK(got.profile.spaces[0].cumulative_peak == 4 << 20);
    CHECK_FALSE(got.profile.exact);
    REQUIRE(got.remarks.size() == 3);
    CHECK_THAT(got.remarks[1], ContainsSubstring("operations without a state before them: 1, the first 'a.c'"));
    CHECK_THAT(got.remarks[2], ContainsSubstring("skipped: 1, the first line 6: ") && ContainsSubstring(fault));
  }
  std::string other_banks = text;
  other_banks.replace(other_banks.find("99.000"), 6, "1.500");
  other_banks.replace(other_banks.find("numBanks: 2", other_banks.find("a.c")), 11, "numBanks: 3");
  CHECK_THAT(read(other_banks).remarks.back(), ContainsSubstring("line 6: DRAM has 3 banks, but had 2 before"));
}

TEST_CASE("tt log: its numbers are rounded, and are never called exact to the byte") {
  const tt_reading got = read(operation("\"a.b\"()", "1.000") + operation("\"a.c\"()", "2.000"));
  CHECK(got.profile.exact);
  CHECK(got.profile.provenance.rounding == 2097);  // of a thousandth of a MiB in each of two banks: 2097.152
  CHECK_FALSE(got.profile.provenance.planned);
  CHECK(got.profile.provenance.remarks.size() == 1);
  std::string coarse = operation("\"a.b\"()", "1");
  CHECK(read(coarse).profile.provenance.rounding == 2 << 20);
}

TEST_CASE("tt log: one that is cut off is not exact, wherever the cut is") {
  const std::string begin = "RuntimeTTNN | DEBUG | Starting execution of program: main\n";
  const std::string end = "RuntimeTTNN | DEBUG | Finished execution of program: main\n";
  const std::string body = operation("\"a.b\"()", "1.000") + operation("\"a.c\"()", "2.000");
  CHECK(read(begin + body + end).profile.exact);
  CHECK(read(begin + body + end).damage.empty());
  const auto is_cut = [](const std::string& text, const char* why) {
    const tt_reading got = read(text);
    CHECK_FALSE(got.profile.exact);
    CHECK_THAT(got.damage, ContainsSubstring(why));
  };
  is_cut(begin + body, "it ends within the program 'main', which begins in line 1");
  is_cut(begin + body + "RuntimeTTNN | DEBUG | Executing operation: %9 = \"a.d\"()\n",
         "it ends before the memory state of 'a.d' in line 8");
  is_cut(body.substr(0, body.rfind("Device DRAM")) + "x", "it ends within the memory state that begins in line 5");
  // What ended it is there.
  CHECK(read(begin + body + "critical | Always | TT_THROW: no room\n").damage.empty());
}

TEST_CASE("tt log: a line that cannot be read costs nothing but itself") {
  std::string text = operation("\"a.b\"()", "1.000") + operation("\"a.c\"()", "2.000");
  text.insert(0, "Device DRAM memory state: MemoryView{numBanks: x}\nRuntimeTTNN | Executing operation: ?\n");
  const tt_reading got = read(text);
  CHECK(got.profile.spaces[0].cumulative_peak == 4 << 20);
  REQUIRE(got.remarks.size() == 2);
  CHECK_THAT(got.remarks[1], ContainsSubstring("skipped: 2, the first line 1: expected MemoryView{"));
}

}  // namespace

}  // namespace memprof_tests::format_tt_log
