#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_json.hpp>

#include <nlohmann/json.hpp>

namespace memprof::inline MEMPROF_ABI {

nlohmann::ordered_json to_json(const memory_prediction& prediction) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const memory_part& part : prediction.parts) {
    nlohmann::ordered_json value{
        {"part", part.name}, {"bytes", part.bytes}, {"least_bytes", part.least}, {"most_bytes", nullptr}};
    if (part.is_known()) value["most_bytes"] = part.most;
    value["source"] = part.source;
    parts.push_back(value);
  }
  return parts;
}

}  // namespace memprof::inline MEMPROF_ABI
