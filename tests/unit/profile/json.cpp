#include <memprof/profile/json.hpp>
#include <scratch_folder.hpp>

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "filled_profile.hpp"

using memprof::profile;

namespace {

profile through_text(const profile& source) { return memprof::parse_json(memprof::to_json(source).dump()); }

/// A field of a struct that a later version of the format added.
struct grown {
  std::int64_t old_field = 1;
  std::int64_t new_field = 2;
};

}  // namespace

namespace memprof::detail {
template <>
inline constexpr name_list field_names<grown>{"old_field", "new_field"};
template <>
inline constexpr name_list later_fields<grown>{"new_field"};
}  // namespace memprof::detail

TEST_CASE("json: an empty, a small and a full profile are read back equal") {
  CHECK(through_text({}) == profile{});
  CHECK(through_text(memprof_tests::small_profile()) == memprof_tests::small_profile());
  const profile full = memprof_tests::filled_profile();
  REQUIRE(full.spaces[1].segments[1].live_at_peak.largest_blocks[1].category == memprof::category::parameter);
  CHECK(through_text(full) == full);
}

TEST_CASE("json: a file holds what was written") {
  const memprof_tests::scratch_folder folder;
  const auto path = folder / "profile.json";
  memprof::write_json(memprof_tests::filled_profile(), path);
  CHECK(memprof::read_json(path) == memprof_tests::filled_profile());
  memprof::write_json(memprof_tests::small_profile(), path);
  CHECK(memprof::read_json(path) == memprof_tests::small_profile());
  std::filesystem::remove(path);
}

TEST_CASE("json: the document begins with its format and version, then has the fields in order") {
  std::string keys;
  const nlohmann::ordered_json document = memprof::to_json({});
  for (const auto& member : document.items()) keys += member.key() + " ";
  CHECK(keys ==
        "format version library_version mode device exact complete begin_unix_ns process duration_ns segments "
        "segments_by_name segment_count step_count spaces memories operations checkpoints checkpoint_count facts anomalies cost "
        "provenance ");
  CHECK(document["format"] == "memprof-profile");
  CHECK(document["version"] == 2);
}

TEST_CASE("json: enumerations are names and addresses are integers") {
  const auto document = memprof::to_json(memprof_tests::small_profile());
  CHECK(document["mode"] == "normal");
  const auto& block = document["spaces"][0]["live_at_peak"]["largest_blocks"][0];
  CHECK(block["category"] == "activation");
  CHECK(block["address"].is_number_integer());
  CHECK(block["address"] == 0x1000);
}

TEST_CASE("json: integers keep all their bits") {
  profile extreme = memprof_tests::small_profile();
  memprof::space_profile& space = extreme.spaces[0];
  space.cumulative_peak = std::numeric_limits<std::int64_t>::max();
  space.cumulative_current = std::numeric_limits<std::int64_t>::min();
  space.allocations = (std::int64_t{1} << 53) + 1;  // no double has this value
  space.live_at_peak.largest_blocks[0].address = std::numeric_limits<std::uint64_t>::max();
  const std::string text = memprof::to_json(extreme).dump();
  CHECK(text.find("9223372036854775807") != std::string::npos);
  CHECK(text.find("-9223372036854775808") != std::string::npos);
  CHECK(text.find("9007199254740993") != std::string::npos);
  CHECK(text.find("18446744073709551615") != std::string::npos);
  CHECK(memprof::parse_json(text) == extreme);
}

TEST_CASE("json: doubles are read back as they were") {
  profile source;
  for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 12.0}) {
    source.cost.record_ns_per_event = value;
    CHECK(through_text(source).cost.record_ns_per_event == value);
  }
  for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    source.cost.record_ns_per_event = value;
    CHECK(memprof::to_json(source)["cost"]["record_ns_per_event"].dump() == "null");
    CHECK(std::isnan(through_text(source).cost.record_ns_per_event));
  }
}

TEST_CASE("json: names that are not UTF-8 are written with replacement characters") {
  profile source;
  source.segments = {{"a\xff"
                      "b",
                      0, 0},
                     {"\xc3\xa9", 0, 0}};
  const memprof_tests::scratch_folder folder;
  const auto path = folder / "profile.json";
  memprof::write_json(source, path);
  const profile read = memprof::read_json(path);
  CHECK(read.segments[0].name ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(read.segments[1].name == "\xc3\xa9");
  std::filesystem::remove(path);
}

TEST_CASE("json: names may hold any character, zero included") {
  profile source;
  source.segments = {{std::string{"a\0b\n\x01\"\\/", 8}, 0, 0}};
  CHECK(through_text(source) == source);
}

TEST_CASE("json: a profile from before there were capacities is read as one without") {
  auto document = memprof::to_json(memprof_tests::small_profile());
  document.erase("device");
  document["spaces"][0].erase("capacity");
  document["spaces"][0].erase("capacity_is_per_core");
  document["spaces"][0].erase("first_shortfall");
  CHECK(memprof::from_json(document) == memprof_tests::small_profile());
}

TEST_CASE("json: what has no operation is null") {
  profile source = memprof_tests::small_profile();
  memprof::space_profile& space = source.spaces[0];
  space.peak_operation.clear();
  space.live_at_peak.largest_blocks[0].operation.clear();
  space.live_at_peak.by_operation = {{"", 4096, 1}};
  const auto document = memprof::to_json(source);
  CHECK(document["spaces"][0]["peak_operation"].is_null());
  CHECK(document["spaces"][0]["live_at_peak"]["largest_blocks"][0]["operation"].is_null());
  CHECK(document["spaces"][0]["live_at_peak"]["by_operation"][0]["owner"].is_null());
  CHECK(memprof::from_json(document) == source);
}

TEST_CASE("json: facts are rows under the name of their table") {
  profile source;
  source.facts = {{"libraries", {"path", "bytes", "seconds"}, {{"/a", 1, 0.5}, {"/b", -2, 1.0}}}, {"empty", {}, {}}};
  CHECK(memprof::to_json(source)["facts"].dump() ==
        R"({"libraries":[{"path":"/a","bytes":1,"seconds":0.5},{"path":"/b","bytes":-2,"seconds":1.0}],"empty":[]})");
  CHECK(through_text(source) == source);
}

TEST_CASE("json: version 1 is read") {
  auto document = memprof::to_json(memprof_tests::small_profile());
  document["version"] = 1;
  document.erase("facts");
  document.erase("process");
  auto& space = document["spaces"][0];
  space["live_at_peak"]["by_operation"][0]["owner"] = "(no operation)";
  space["live_at_peak"]["largest_blocks"][0]["operation"] = "(no operation)";
  space["peak_operation"] = "";
  document["pytorch_operations"] = nlohmann::ordered_json::parse(
      R"([{"name":"aten::mm","input_shapes":"[2, 2]","count":3,"cpu_time_ns":4,"device_time_ns":0,"cpu_memory":-16,"device_memory":0}])");
  document["approximations"] =
      nlohmann::ordered_json::parse(R"([{"name":"aten::lstm","cause":"scratch memory","count":2,"bytes":8}])");
  document["not_captured"] = {"CUDA: there is no CUDA device", "no backend"};
  profile expected = memprof_tests::small_profile();
  memprof::live_set& live = expected.spaces[0].live_at_peak;
  live.by_operation[0].owner.clear();
  live.largest_blocks[0].operation.clear();
  expected.spaces[0].peak_operation.clear();
  const profile read = memprof::from_json(document);
  CHECK(read.spaces == expected.spaces);
  CHECK(memprof::rows_of<memprof::pytorch_operation>(read.facts) ==
        std::vector<memprof::pytorch_operation>{{"aten::mm", "[2, 2]", 3, 4, 0, -16, 0}});
  CHECK(memprof::rows_of<memprof::approximated_operation>(read.facts) ==
        std::vector<memprof::approximated_operation>{{"aten::lstm", "scratch memory", 2, 8}});
  CHECK(memprof::rows_of<memprof::missing_source>(read.facts) ==
        std::vector<memprof::missing_source>{{"CUDA", "there is no CUDA device"}, {"", "no backend"}});
  // It had every segment, without a number.
  CHECK(read.segment_count == 1);
  CHECK(read.segments.at(0).number == 0);
  CHECK(memprof::parse_json(document.dump()) == read);
}

TEST_CASE("json: keys that a later memprof added are ignored") {
  auto document = memprof::to_json(memprof_tests::small_profile());
  document["new_key"] = {1, 2, 3};
  document["spaces"][0]["new_key"] = "x";
  CHECK(memprof::from_json(document) == memprof_tests::small_profile());
}

TEST_CASE("json: a field that an earlier memprof did not write keeps its default") {
  constexpr memprof::detail::json_rules rules{.format = "test", .version = 1};
  const auto read = [&](const char* fields, grown& target) {
    memprof::detail::json_input input{fields};
    memprof::detail::read_document(input, {"test"}, rules, target);
  };
  grown target{5, 6};
  read(R"({"format": "test", "version": 1, "old_field": 7})", target);
  CHECK(target.old_field == 7);
  CHECK(target.new_field == 6);
  CHECK_THROWS_AS(read(R"({"format": "test", "version": 1, "new_field": 7})", target), memprof::error);
}

TEST_CASE("json: the text is laid out as nlohmann/json does") {
  for (const profile& source : {profile{}, memprof_tests::small_profile(), memprof_tests::filled_profile()}) {
    const std::string text = memprof::to_json_text(source);
    CHECK(text == nlohmann::ordered_json::parse(text).dump(1));
  }
}

TEST_CASE("json: any bytes are written as nlohmann/json writes them") {
  // Bytes that begin, continue and break off characters, at the limits of the ranges of Unicode's table 3-7.
  constexpr unsigned char bytes[] = {0x00, 0x1F, 0x20, '"',  '\\', '\n', 0x7E, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                     0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  std::mt19937 random{7};
  for (int round = 0; round < 20'000; ++round) {
    std::string words;
    const auto length = static_cast<std::size_t>(random() % 12);
    while (words.size() < length) words += static_cast<char>(bytes[random() % std::size(bytes)]);
    memprof::detail::json_output out;
    out.value(words);
    REQUIRE(out.text() == memprof::detail::dump(nlohmann::ordered_json(words)));
  }
}

TEST_CASE("json: any number is read back as it was") {
  std::mt19937_64 random{11};
  for (int round = 0; round < 20'000; ++round) {
    const double number = std::bit_cast<double>(random());
    memprof::detail::json_output out;
    out.value(number);
    const auto read = nlohmann::ordered_json::parse(out.text());
    if (!std::isfinite(number)) {
      REQUIRE(read.is_null());
      continue;
    }
    REQUIRE(read.is_number_float());
    REQUIRE(read.get<double>() == number);
  }
}
