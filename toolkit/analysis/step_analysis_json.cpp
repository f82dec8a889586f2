#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/breakdown_json.hpp>
#include <memprof/toolkit/analysis/reserved_causes_json.hpp>
#include <memprof/toolkit/analysis/step_analysis_json.hpp>

#include <nlohmann/json.hpp>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

nlohmann::ordered_json to_json(const step_analysis& of) {
  nlohmann::ordered_json document = to_json(of.spaces);
  for (const file_causes& each : of.causes) {
    for (nlohmann::ordered_json& space : to_json(each.spaces)) {
      space["file"] = each.file;
      document["reserved_causes"].push_back(std::move(space));
    }
  }
  return document;
}

}  // namespace memprof::inline MEMPROF_ABI
