#pragma once

#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests {

struct declared_struct {
  std::string name;
  std::vector<std::string> fields;
};

/// A field's name in JSON, whose keys do not change: one is older than the rule that a name stands for one type.
inline std::string json_name(const std::string& field) { return field == "peak_live_bytes" ? "live_at_peak" : field; }

/// The structs of a profile that a header declares, with their fields, both in the order of the text.
inline std::vector<declared_struct> declared_in(const std::string& name) {
  std::ifstream header{MEMPROF_SOURCE_DIR "/include/memprof/" + name};
  const std::regex opening{R"(^struct (\w+) \{$)"};
  const std::regex field{R"(^  [\w:<>]+ (\w+)(?: = [^;]+)?;.*$)"};
  std::vector<declared_struct> result;
  std::smatch match;
  bool inside = false;
  bool is_compared = false;  // as all structs of a profile are, and no other one beside them
  for (std::string line; std::getline(header, line);) {
    if (line == "};") {
      if (inside && !is_compared) result.pop_back();
      inside = false;
    }
    if (inside && line.find(" operator==(") != std::string::npos) is_compared = true;
    if (std::regex_match(line, match, opening)) {
      inside = true;
      is_compared = false;
      result.push_back({match[1], {}});
    } else if (inside && std::regex_match(line, match, field)) {
      result.back().fields.push_back(json_name(match[1]));
    }
  }
  return result;
}

/// The headers of the facets, in the order of their list.
inline std::vector<std::string> facet_headers() {
  std::ifstream list{MEMPROF_SOURCE_DIR "/include/memprof/profile/space_facets.hpp"};
  const std::regex include{R"(^#include <memprof/(ledger/facet/.*)>$)"};
  std::vector<std::string> result;
  std::smatch match;
  for (std::string line; std::getline(list, line);) {
    if (std::regex_match(line, match, include)) result.push_back(match[1]);
  }
  return result;
}

/// All structs of a profile, in the order of `memprof::profile_structs`.
inline std::vector<declared_struct> declared_structs() {
  std::vector<declared_struct> result{declared_in("trace/capture_info.hpp").front()};
  for (const char* const shared :
       {"ledger/value_summary.hpp", "ledger/event_tally.hpp", "ledger/linear_fit.hpp", "ledger/live_set.hpp"}) {
    for (declared_struct& declared : declared_in(shared)) result.push_back(std::move(declared));
  }
  for (const std::string& facet : facet_headers()) {
    for (declared_struct& declared : declared_in(facet)) result.push_back(std::move(declared));
  }
  for (declared_struct& declared : declared_in("profile/space_facets.hpp")) result.push_back(std::move(declared));
  for (declared_struct& declared : declared_in("profile/operation_profile.hpp")) result.push_back(std::move(declared));
  for (declared_struct& declared : declared_in("profile/owner_growth.hpp")) result.push_back(std::move(declared));
  for (declared_struct& declared : declared_in("profile/profile.hpp")) result.push_back(std::move(declared));
  return result;
}

}  // namespace memprof_tests
