// Every `operator new` of this program is recorded: what reading a profile takes is in proportion to the file, however hostile.
#include <catch2/catch_test_macros.hpp>

#include <memprof/backend/new_delete.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>

#include <scratch_folder.hpp>
#include <unit/profile/filled_profile.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace {

std::int64_t peak_of(const std::function<void()>& action) {
  auto capture = memprof::begin_capture();
  action();
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile* const space = profile.find_space("cpu");
  return space == nullptr ? 0 : space->cumulative_peak;
}

std::int64_t peak_of_reading(const std::string& text) {
  return peak_of([&] {
    try {
      (void)memprof::parse_json(text);
    } catch (const memprof::error&) {
    }
  });
}

/// `before`, as often `element` as makes a megabyte, with commas between them, and `after`.
std::string megabyte_of(const std::string& before, const std::string& element, const std::string& after) {
  constexpr std::size_t size = 1 << 20;
  std::string text = before + element;
  while (text.size() < size) text += "," + element;
  return text + after;
}

const std::string begin = R"({"format":"memprof-profile","version":2,)";

}  // namespace

TEST_CASE("json reader memory: what does not belong takes next to nothing") {
  constexpr std::int64_t little = 200'000;  // the exception, the parser, the first struct
  CHECK(peak_of_reading(megabyte_of(begin + R"("spaces":[)", "0", "]}")) < little);
  CHECK(peak_of_reading(megabyte_of(begin + R"("spaces":[)", "{}", "]}")) < little);
  CHECK(peak_of_reading(megabyte_of(begin + R"("operations":[)", "[]", "]}")) < little);
  CHECK(peak_of_reading(megabyte_of(begin + R"("later":[)", R"({"a":[1,"b"]})", "]}")) < little);
  CHECK(peak_of_reading(megabyte_of(begin, R"("later":0)", "}")) < little);
  CHECK(peak_of_reading("[" + std::string(1 << 20, '[')) < little);
}

TEST_CASE("json reader memory: what belongs takes no more than its structs, and a vector that grows") {
  const auto growth = [](const std::string& text) {
    return static_cast<double>(peak_of_reading(text)) / static_cast<double>(text.size());
  };
  // Two to three times the elements, as the old ones live until the new ones are there. The shortest row of a table has three
  // bytes with its comma.
  CHECK(growth(megabyte_of(begin + R"("facts":{"table":[)", "{}", "]}}")) <
        3.0 * sizeof(memprof::vector<memprof::fact_value>) / 3 + 1);
  CHECK(growth(megabyte_of(begin + R"("segments":[)", R"({"name":"","begin_ns":0,"end_ns":0})", "]}")) <
        3.0 * sizeof(memprof::segment) / 36 + 1);
}

TEST_CASE("json reader memory: a file takes no more than the profile that is in it") {
  memprof::profile large = memprof_tests::filled_profile();
  const memprof::operation_profile child = large.operations[1];
  large.operations.resize(5000, child);
  const memprof_tests::scratch_folder folder;
  const auto path = folder / "profile.json";
  memprof::write_json(large, path);
  memprof::profile read;
  const std::int64_t reading = peak_of([&] { read = memprof::read_json(path); });
  const std::int64_t copying = peak_of([&] { const memprof::profile copy = read; });
  CHECK(read == large);
  CHECK(reading < 3 * copying);
  CHECK(reading < static_cast<std::int64_t>(std::filesystem::file_size(path)));
  std::filesystem::remove(path);
}
