#include <memprof/profile/json.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "filled_profile.hpp"

namespace memprof_tests::profile_json_hostile {

using Catch::Matchers::EndsWith;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

namespace {

const std::string start = "cannot read a profile from 'run.json': ";

std::string error_in(const std::string& text) {
  try {
    (void)memprof::parse_json(text, "run.json");
  } catch (const memprof::error& problem) {
    return problem.what();
  }
  return "no error";
}

std::string small_text() { return memprof::to_json(memprof_tests::small_profile()).dump(); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string byte_of(std::size_t offset) { return " (byte " + std::to_string(offset) + ")"; }

const std::string begin = R"({"format":"memprof-profile","version":2,)";

}  // namespace

TEST_CASE("json hostile: half a million unknown keys are skipped in time proportional to their number") {
  // Time is not measured here; with work for each pair of keys this would take hours.
  std::string keys;
  for (int key = 0; key < 500'000; ++key) keys += "\"key " + std::to_string(key) + "\":" + std::to_string(key) + ",";
  CHECK(memprof::parse_json("{" + keys + small_text().substr(1)) == memprof_tests::small_profile());
}

TEST_CASE("json hostile: an array of something else ends the reading at its first element") {
  std::string numbers = "0";
  for (int count = 0; count < 1000; ++count) numbers += ",0";
  const std::string before = begin + R"("spaces":[)";
  CHECK_THAT(error_in(before + numbers + "]}"), Equals(start + "/spaces/0 must be an object, not 0" + byte_of(before.size())));
  // What comes after it is not even looked at.
  CHECK_THAT(error_in(before + "0,%&$"), Equals(start + "/spaces/0 must be an object, not 0" + byte_of(before.size())));
}

TEST_CASE("json hostile: an object that lacks a key ends the reading where it ends") {
  const std::string before = begin + R"("segments":[{"name":"A","begin_ns":0)";
  CHECK_THAT(error_in(before + "},{},{},{}]}"), Equals(start + "/segments/0/end_ns is missing" + byte_of(before.size())));
}

TEST_CASE("json hostile: what is nested too deep is refused where it becomes so, known or not") {
  const std::string before = begin + R"("later":)";
  const auto nested = [&](std::size_t depth) { return before + std::string(depth, '[') + std::string(depth, ']'); };
  // The outermost object is the first of a hundred levels.
  CHECK(memprof::parse_json(nested(99) + "," + small_text().substr(begin.size())) == memprof_tests::small_profile());
  CHECK_THAT(error_in(nested(100)), Equals(start + "nested deeper than 100 levels" + byte_of(before.size() + 99)));
  CHECK_THAT(error_in(before + std::string(1'000'000, '[')),
             Equals(start + "nested deeper than 100 levels" + byte_of(before.size() + 99)));
  std::string objects = before;
  for (int depth = 0; depth < 1000; ++depth) objects += R"({"a":)";
  CHECK_THAT(error_in(objects), StartsWith(start + "nested deeper than 100 levels"));

  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (int depth = 0; depth < 200; ++depth) document = nlohmann::ordered_json::array({document});
  auto whole = memprof::to_json(memprof_tests::small_profile());
  whole["later"] = document;
  CHECK_THROWS_WITH(memprof::from_json(whole), "cannot read a profile from 'JSON document': nested deeper than 100 levels");
}

TEST_CASE("json hostile: numbers of any length are refused without being shown") {
  const std::string digits(1'000'000, '7');
  CHECK_THAT(error_in(begin + R"("begin_unix_ns":0.)" + digits + "}"),
             StartsWith(start + "/begin_unix_ns must be an integer of at most 63 bits and a sign, not a long number (byte "));
  const std::string before = begin + R"("begin_unix_ns":)";
  const std::string found = error_in(before + digits + "}");
  CHECK(found.starts_with(start + "invalid JSON at byte " + std::to_string(before.size() + digits.size() - 1) +
                          ": expected a number below 1.8e308;"));
  CHECK(found.size() < 400);
}

TEST_CASE("json hostile: a key that comes twice is refused") {
  const std::string text = small_text();
  CHECK_THAT(error_in(replaced(text, R"("duration_ns":0)", R"("duration_ns":0,"duration_ns":0)")),
             StartsWith(start + "/duration_ns occurs twice (byte "));
  CHECK_THAT(error_in(replaced(text, R"("allocation_count":1)", R"("allocation_count":1,"allocation_count":1)")),
             StartsWith(start + "/spaces/0/allocation_count occurs twice (byte "));
  CHECK_THAT(error_in(replaced(text, R"("version":2)", R"("version":2,"version":2)")),
             StartsWith(start + "/version occurs twice"));
  CHECK_THAT(error_in(replaced(text, R"("version":2)", R"("version":2,"format":"memprof-profile")")),
             StartsWith(start + "/format occurs twice"));
  // Of a key that is not known it makes no difference.
  CHECK(error_in(replaced(text, R"("duration_ns":0)", R"("later":0,"later":1,"duration_ns":0)")) == "no error");
}

TEST_CASE("json hostile: keys may come in any order, and what the document is explains more than a wrong value in it") {
  nlohmann::json sorted = nlohmann::json::parse(small_text());  // by name: "format" and "version" are not the first
  CHECK(memprof::parse_json(sorted.dump()) == memprof_tests::small_profile());

  sorted["approximations"] = 1;
  CHECK_THAT(error_in(sorted.dump()),
             Equals(start + "/approximations must be an array, not 1" + byte_of(sorted.dump().find("1,\"begin_unix_ns\""))));
  sorted["version"] = 3;
  CHECK_THAT(error_in(sorted.dump()), StartsWith(start + "/version is 3, and this memprof reads versions 1 to 2"));
  sorted["format"] = "other";
  CHECK_THAT(error_in(sorted.dump()), StartsWith(start + R"(/format must be "memprof-profile", not "other")"));
  sorted.erase("format");
  CHECK_THAT(error_in(sorted.dump()), StartsWith(start + "/version is 3"));
  sorted.erase("version");
  CHECK_THAT(error_in(sorted.dump()), StartsWith(start + "/format is missing"));
  CHECK_THAT(error_in(R"({"traceEvents":[{"name":"x"}],"device":0})"), StartsWith(start + "/format is missing"));
}

TEST_CASE("json hostile: a file is read as its text is, whatever its size") {
  memprof::profile large = memprof_tests::filled_profile();
  for (int count = 0; count < 2000; ++count) large.facts[0].rows.push_back(large.facts[0].rows[0]);
  const memprof_tests::scratch_folder folder;
  const auto path = folder / "profile.json";
  memprof::write_json(large, path);
  CHECK(memprof::read_json(path) == large);

  std::ofstream{path, std::ios::app} << "x";
  const std::size_t size = std::filesystem::file_size(path);
  CHECK_THROWS_WITH(memprof::read_json(path), StartsWith("cannot read a profile from '" + path.string() +
                                                         "': invalid JSON at byte " + std::to_string(size - 1)));
  std::filesystem::resize_file(path, 50'000);
  CHECK_THROWS_WITH(memprof::read_json(path),
                    StartsWith("cannot read a profile from '" + path.string() + "': it is cut off after 50000 bytes"));
  std::filesystem::resize_file(path, 0);
  CHECK_THROWS_WITH(memprof::read_json(path), StartsWith("cannot read a profile from '" + path.string() + "': it is empty"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(memprof::read_json("/"), Equals("cannot read '/': Is a directory"));
}

}  // namespace memprof_tests::profile_json_hostile
