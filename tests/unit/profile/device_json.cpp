#include <memprof/profile/device_json.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace memprof_tests::profile_device_json {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const std::string full = R"({
  "format": "memprof-device", "version": 1, "name": "my card", "layout": "tile", "core_columns": 4, "core_rows": 2,
  "spaces": [
    {"name": "dram", "capacity": 6442450944, "alignment": 64, "size_multiple": 2048, "banks": 6},
    {"name": "l1", "capacity": 1048576, "is_per_core": true, "circular_buffers": true}
  ]
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// What the error says when `from` in a good file is replaced by `to`.
void check_refused(const std::string& from, const std::string& to, const std::string& message) {
  CAPTURE(from, to);
  CHECK_THROWS_MATCHES(
      memprof::parse_device(replaced(full, from, to), "card.json"), memprof::error,
      MessageMatches(ContainsSubstring("cannot read a device description from 'card.json': ") && ContainsSubstring(message)));
}

}  // namespace

TEST_CASE("device JSON: every field is read") {
  memprof::device_description expected;
  expected.name = "my card";
  expected.layout = memprof::tensor_layout::tile;
  expected.core_columns = 4;
  expected.core_rows = 2;
  expected.add({.name = "dram", .capacity = 6'442'450'944, .alignment = 64, .size_multiple = 2048, .banks = 6});
  expected.add({.name = "l1", .capacity = 1'048'576, .is_per_core = true, .circular_buffers = true});
  const memprof::device_description read = memprof::parse_device(full);
  CHECK(read.name == expected.name);
  CHECK(read.layout == expected.layout);
  CHECK(read.core_columns == expected.core_columns);
  CHECK(read.core_rows == expected.core_rows);
  REQUIRE(read.space_count == expected.space_count);
  CHECK(read.spaces == expected.spaces);
}

TEST_CASE("device JSON: what is left out keeps its default") {
  const memprof::device_description read =
      memprof::parse_device(R"({"format": "memprof-device", "version": 1, "name": "a", "spaces": [{"name": "b"}]})");
  CHECK(read.layout == memprof::tensor_layout::row_major);
  CHECK(read.tensor_space() == memprof::device_space{.name = "b"});
}

TEST_CASE("device JSON: what cannot be is refused with its place") {
  check_refused("\"my card\"", "\"\"", "/name has 0 bytes, but must have 1 to 31");
  check_refused("\"memprof-device\"", "\"memprof-profile\"", "/format must be \"memprof-device\"");
  check_refused("\"version\": 1", "\"version\": 2", "/version is 2");
  check_refused("\"tile\"", "\"tiles\"", "/layout must be one of \"row_major\" \"tile\", not \"tiles\"");
  check_refused("\"core_rows\": 2", "\"core_rows\": 256", "/core_rows is 256, but must be from 0 to 255");
  check_refused("\"core_rows\": 2", "\"core_rows\": 0", "/spaces/1/is_per_core needs /core_columns and /core_rows");
  check_refused("6442450944", "-1", "/spaces/0/capacity must be an integer from 0 to 2^63-1, not -1");
  check_refused("\"alignment\": 64", "\"alignment\": 48", "/spaces/0/alignment is 48, but must be a power of two");
  check_refused("\"banks\": 6", "\"banks\": 0", "/spaces/0/banks is 0");
  check_refused("\"capacity\": 6", "\"capcity\": 6",
                "/spaces/0: the key \"capcity\" means nothing here; known are name capacity alignment");
  check_refused("\"layout\"", "\"Layout\"", ": the key \"Layout\" means nothing here");
  check_refused("\"name\": \"l1\"", "\"name\": \"dram\"", "/spaces/1/name is 'dram', which an earlier space already has");
  check_refused("\"name\": \"l1\", ", "", "/spaces/1/name is missing");
  check_refused("\n  ]\n}", "", "it is cut off after");
}

TEST_CASE("device JSON: a device has one to eight spaces") {
  const std::string start = R"({"format": "memprof-device", "version": 1, "name": "a", "spaces": [)";
  CHECK_THROWS_MATCHES(memprof::parse_device(start + "]}"), memprof::error,
                       MessageMatches(ContainsSubstring("/spaces is 0, but must be from 1 to 8")));
}

TEST_CASE("device JSON: a name that is no preset is a file") {
  const memprof_tests::scratch_folder folder;
  const std::filesystem::path file = folder / "card.json";
  std::ofstream{file} << full;
  CHECK(memprof::find_device(file.string()).name.view() == "my card");
  CHECK(memprof::read_device(file).space_count == 2);
  std::filesystem::remove(file);
  CHECK(memprof::find_device("gpu-80gb").name.view() == "gpu-80gb");
  CHECK_THROWS_MATCHES(memprof::find_device(file.string()), memprof::error,
                       MessageMatches(ContainsSubstring("unknown device preset")));
}

}  // namespace memprof_tests::profile_device_json
