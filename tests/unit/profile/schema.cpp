#include <memprof/profile/json.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "declared_structs.hpp"
#include "filled_profile.hpp"

#if __has_include(<valijson/validator.hpp>)
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#define MEMPROF_TESTS_HAVE_VALIJSON 1
#endif

namespace memprof_tests::profile_schema {

namespace {

nlohmann::json read_schema() {
  std::ifstream file{MEMPROF_SOURCE_DIR "/docs/profile.schema.json"};
  return nlohmann::json::parse(file);
}

template <class Names>
std::vector<std::string> as_strings(const Names& names) {
  return {names.begin(), names.end()};
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> keys_of(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& member : object.items()) keys.push_back(member.key());
  return keys;
}

}  // namespace

TEST_CASE("schema: it has every field of every struct, requires them as the reader does, and describes them") {
  const nlohmann::json schema = read_schema();
  const auto structs = memprof_tests::declared_structs();
  std::size_t index = 0;
  memprof::profile_structs{}.each([&]<class T>() {
    REQUIRE(index < structs.size());
    const std::string& name = structs[index++].name;
    INFO("struct " << name);
    const bool is_root = name == "profile";
    const nlohmann::json& definition = is_root ? schema : schema.at("definitions").at(name);

    std::vector<std::string> expected = as_strings(memprof::detail::field_names<T>);
    std::vector<std::string> required = expected;
    for (const std::string_view later : memprof::detail::later_fields<T>) std::erase(required, later);
    for (const char* key : {"format", "version"}) {
      if (!is_root) continue;
      expected.emplace_back(key);
      required.emplace_back(key);
    }
    CHECK(keys_of(definition.at("properties")) == sorted(expected));
    CHECK(sorted(definition.at("required").get<std::vector<std::string>>()) == sorted(required));
    CHECK(definition.at("additionalProperties") == true);
    const auto& may_be_negative = memprof::detail::signed_fields<T>;
    for (const auto& property : definition.at("properties").items()) {
      INFO(property.key());
      CHECK(property.value().contains("description"));
      if (!property.value().contains("type") || property.value()["type"] != "integer") continue;
      const bool is_signed = std::find(may_be_negative.begin(), may_be_negative.end(), property.key()) != may_be_negative.end();
      CHECK((property.value().value("minimum", -1) < 0) == is_signed);
    }
  });
  CHECK(index == structs.size());
}

TEST_CASE("schema: the names of enumerations are those of the code") {
  const nlohmann::json schema = read_schema();
  CHECK(schema["properties"]["mode"]["enum"] == as_strings(memprof::detail::run_mode_names));
  CHECK(schema["definitions"]["live_block"]["properties"]["category"]["enum"] == as_strings(memprof::detail::category_names));
  CHECK(schema["definitions"]["capacity_shortfall"]["properties"]["category"]["enum"] ==
        as_strings(memprof::detail::category_names));
  CHECK(schema["properties"]["format"]["const"] == memprof::json_format);
  CHECK(schema["properties"]["version"]["const"] == memprof::json_version);
}

TEST_CASE("schema: docs/profile.md has a table row for every field of every struct") {
  std::ifstream file{MEMPROF_SOURCE_DIR "/docs/profile.md"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  for (const memprof_tests::declared_struct& declared : memprof_tests::declared_structs()) {
    const std::size_t begin = text.find(declared.name == "profile" ? "## The document\n" : "## " + declared.name + "\n");
    INFO("struct " << declared.name);
    REQUIRE(begin != std::string::npos);
    const std::string section = text.substr(begin, text.find("\n## ", begin) - begin);
    for (const std::string& field : declared.fields) {
      INFO(field);
      CHECK(section.find("\n| `" + field + "` |") != std::string::npos);
    }
  }
}

#if defined(MEMPROF_TESTS_HAVE_VALIJSON)

namespace {

/// What a JSON-Schema validator says against a document; empty if it is valid.
std::string objections(const nlohmann::ordered_json& document) {
  static const nlohmann::json schema_document = read_schema();
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter{schema_document}, schema);

  const nlohmann::json plain = nlohmann::json::parse(document.dump());
  valijson::ValidationResults results;
  valijson::Validator validator;
  std::string text;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter{plain}, &results)) return text;
  text = "invalid:";
  for (valijson::ValidationResults::Error problem; results.popError(problem);) {
    text += '\n';
    for (const std::string& step : problem.context) text += step;
    text += ' ' + problem.description;
  }
  return text;
}

}  // namespace

TEST_CASE("schema: an independent validator accepts an empty, a small and a full profile") {
  CHECK(objections(memprof::to_json({})).empty());
  CHECK(objections(memprof::to_json(memprof_tests::small_profile())).empty());
  CHECK(objections(memprof::to_json(memprof_tests::filled_profile())).empty());
}

TEST_CASE("schema: an independent validator accepts unknown keys, as the reader does") {
  auto document = memprof::to_json(memprof_tests::small_profile());
  document["spaces"][0]["new_key"] = 1;
  CHECK(objections(document).empty());
}

TEST_CASE("schema: an independent validator refuses what the reader refuses") {
  using nlohmann::ordered_json;
  const auto with = [](const char* pointer, const ordered_json& value) {
    auto document = memprof::to_json(memprof_tests::small_profile());
    document.at(ordered_json::json_pointer{pointer}) = value;
    CHECK_THROWS_AS(memprof::from_json(document), memprof::error);
    return objections(document);
  };
  CHECK(!with("/format", "other").empty());
  CHECK(!with("/version", 3).empty());
  CHECK(!with("/mode", "fast").empty());
  CHECK(!with("/exact", 1).empty());
  CHECK(!with("/segments", "none").empty());
  CHECK(!with("/spaces/0/name", 0).empty());
  CHECK(!with("/spaces/0/cumulative_peak", 1.5).empty());
  CHECK(!with("/spaces/0/cumulative_peak", -1).empty());
  CHECK(!with("/spaces/0/segments/0/segment_peak", -1).empty());
  CHECK(!with("/spaces/0/segments/0/segment_peak", nullptr).empty());
  CHECK(!with("/spaces/0/live_at_peak/largest_blocks/0/category", "unknown").empty());
  CHECK(!with("/spaces/0/live_at_peak/largest_blocks/0/requires_grad", "maybe").empty());
  CHECK(!with("/cost/record_ns_per_event", "8").empty());
  CHECK(!with("/device", nullptr).empty());
  CHECK(!with("/spaces/0/capacity", "24GB").empty());
  CHECK(!with("/spaces/0/capacity_is_per_core", 1).empty());
  CHECK(!with("/spaces/0/first_shortfall/core", 3).empty());
  CHECK(!with("/spaces/0/first_shortfall/segment", -2).empty());
  CHECK(!with("/spaces/0/first_shortfall/remedy", nullptr).empty());

  auto lacking = memprof::to_json(memprof_tests::small_profile());
  lacking["spaces"][0]["live_at_peak"].erase("by_category");
  CHECK(!objections(lacking).empty());
}

#else

TEST_CASE("schema: an independent validator accepts profiles and refuses what is wrong") {
  SKIP("needs the headers of valijson (Debian: libvalijson-dev)");
}

#endif

}  // namespace memprof_tests::profile_schema
