#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_run_folder.hpp>
#include <memprof/trace/trace.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace memprof_tests::format_tt_run_folder {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

namespace fs = std::filesystem;

void make_file(const fs::path& path, const std::string& text = "") { std::ofstream{path, std::ios::binary} << text; }

/// A log of two operations, each after a state of DRAM.
std::string log_of_two() {
  std::string text;
  for (const std::string name : {"ttnn.a", "ttnn.b"}) {
    text += "RuntimeTTNN | DEBUG | Executing operation: %1 = \"" + name + "\"() : () -> tensor<2x3xbf16> loc(\"" + name +
            "\")\n" +
            "Device memory state before operation AnOp\n"
            "Device DRAM memory state: MemoryView{numBanks: 2, totalBytesPerBank: 64.000 MB, totalBytesAllocatedPerBank: 1.000 "
            "MB, totalBytesFreePerBank: 8.000 MB, largestContiguousBytesFreePerBank: 2.000 MB}\n";
  }
  return text;
}

}  // namespace

TEST_CASE("tt run: a log is named after its run") {
  CHECK(memprof::tt_run_of_log("logs/decoder_20260122_143957/decoder_profile.log") == "decoder");
  CHECK(memprof::tt_run_of_log("decoder.log") == "decoder");
  CHECK(memprof::tt_run_of_log("_profile.log") == "_profile");
}

TEST_CASE("tt run: the log in a folder has the folder's name, else is the only one") {
  const scratch_folder scratch;
  const fs::path folder = fs::path{scratch.file("a_decoder_20260122_143957")};
  fs::create_directory(folder);
  CHECK_THROWS_MATCHES(memprof::tt_log_in(folder), memprof::error,
                       MessageMatches(ContainsSubstring("there is no 'a_decoder_profile.log' in it")));
  make_file(folder / "other_profile.log");
  CHECK(memprof::tt_log_in(folder) == folder / "other_profile.log");
  make_file(folder / "third_profile.log");
  CHECK_THROWS_AS(memprof::tt_log_in(folder), memprof::error);
  make_file(folder / "a_decoder_profile.log");
  CHECK(memprof::tt_log_in(folder) == folder / "a_decoder_profile.log");
  CHECK_THROWS_MATCHES(memprof::tt_log_in(folder / "nowhere"), memprof::error,
                       MessageMatches(ContainsSubstring("it is not the folder of a run")));
}

TEST_CASE("tt run: each run gets a folder of its own") {
  const scratch_folder scratch;
  const fs::path base = fs::path{scratch.file("logs")} / "deep";
  const fs::path first = memprof::make_tt_run_folder(base, "decoder");
  const fs::path second = memprof::make_tt_run_folder(base, "decoder");
  CHECK(fs::is_directory(first));
  CHECK(fs::is_directory(second));
  CHECK(first != second);
  CHECK(first.filename().string().starts_with("decoder_2"));
  CHECK(first.filename().string().size() == std::string{"decoder_YYYYmmdd_HHMMSS"}.size());
  make_file(scratch.file("a_file"));
  CHECK_THROWS_MATCHES(memprof::make_tt_run_folder(scratch.file("a_file"), "decoder"), memprof::error,
                       MessageMatches(ContainsSubstring("cannot create a folder in '")));
}

TEST_CASE("tt run: the two files of a rank have the same operations") {
  const scratch_folder scratch;
  const std::string path = scratch.file("run.log");
  make_file(path, log_of_two());
  const memprof::detail::file_handle log{std::fopen(path.c_str(), "rb")};
  const memprof::tt_log_content content = memprof::content_of_tt_log(log.get(), path);
  REQUIRE(content.ranks.size() == 1);
  const std::string memory = scratch.file("memory.json");
  const std::string operations = scratch.file("operations.json");
  CHECK(memprof::write_tt_files(log.get(), path, content, content.ranks[0], memory, operations) == 2);
  CHECK_THAT(memprof::detail::read_whole_file(operations), ContainsSubstring("ttnn.a") && ContainsSubstring("ttnn.b"));
  memprof::tt_rank_summary more = content.ranks[0];
  more.operations = 3;
  CHECK_THROWS_MATCHES(memprof::write_tt_files(log.get(), path, content, more, memory, operations), memprof::error,
                       MessageMatches(ContainsSubstring("do not match: operations are missing")));
  CHECK_THROWS_AS(memprof::write_tt_files(log.get(), path, content, more, scratch.file("nowhere/memory.json"), operations),
                  memprof::error);
  const std::string inputs = scratch.file("inputs.json");
  memprof::write_tt_inputs_file(content, inputs);
  CHECK_FALSE(memprof::detail::read_whole_file(inputs).empty());
}

TEST_CASE("tt run: a log is read into a trace, with what there is to say about it") {
  const scratch_folder scratch;
  const std::string path = scratch.file("run.log");
  make_file(path, log_of_two());
  const memprof::detail::file_handle log{std::fopen(path.c_str(), "rb")};
  memprof::trace target;
  const memprof::tt_reading reading = memprof::read_tt_log(log.get(), path, target);
  CHECK(reading.is_whole);
  CHECK(reading.damage.empty());
  CHECK(target.encoded_bytes() != 0);
  REQUIRE(reading.remarks.size() == 1);
  CHECK_THAT(reading.remarks[0], ContainsSubstring("what ttnn.b allocated is unknown"));
}

}  // namespace memprof_tests::format_tt_run_folder
