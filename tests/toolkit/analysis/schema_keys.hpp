#pragma once

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof_tests {

/// The JSON Schema in docs/.
[[nodiscard]] inline nlohmann::json read_schema(const char* name) {
  std::ifstream file{std::string{MEMPROF_SOURCE_DIR "/docs/"} + name};
  return nlohmann::json::parse(file);
}

/// An object has the keys that its definition requires, in that order, and each is described.
inline void check_keys(const nlohmann::ordered_json& object, const nlohmann::json& definition) {
  std::vector<std::string> keys;
  for (const auto& member : object.items()) {
    INFO(member.key());
    CHECK(definition.at("properties").at(member.key()).contains("description"));
    keys.push_back(member.key());
  }
  CHECK(definition.at("required").get<std::vector<std::string>>() == keys);
}

}  // namespace memprof_tests
