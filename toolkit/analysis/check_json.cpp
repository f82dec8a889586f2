#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/check_json.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json condition_value(const check_condition& of) {
  nlohmann::ordered_json owners = nlohmann::ordered_json::array();
  for (const check_owner& owner : of.owners) {
    owners.push_back({{"operation", text_or_null(owner.operation)},
                      {"operations", owner.operations},
                      {"bytes", owner.bytes},
                      {"change_bytes", of.owners_are_changes ? nlohmann::ordered_json(owner.change) : nullptr}});
  }
  return {{"condition", condition_name(of)},
          {"passed", of.has_passed()},
          {"text", condition_text(of)},
          {"reason", to_string(of.reason)},
          {"subject", to_string(of.subject)},
          {"space", of.space},
          {"name", text_or_null(of.name)},
          {"bytes", of.bytes},
          {"bytes_per_step", of.reason == check_reason::growth ? nlohmann::ordered_json(of.per_step) : nullptr},
          {"at_most_bytes", of.at_most},
          {"baseline_bytes", of.before < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(of.before)},
          {"owners", owners}};
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const check_report& of) {
  constexpr std::size_t most = 100;
  nlohmann::ordered_json conditions = nlohmann::ordered_json::array();
  for (const bool has_passed : {false, true}) {
    for (const check_condition& each : of.conditions) {
      if (each.has_passed() == has_passed && conditions.size() < most) conditions.push_back(detail::condition_value(each));
    }
  }
  return {{"format", check_json_format},
          {"version", check_json_version},
          {"passed", of.has_passed()},
          {"verdict", verdict_of(of)},
          {"caveats", of.caveats},
          {"file", detail::text_or_null(of.file)},
          {"baseline", detail::text_or_null(of.baseline_file)},
          {"mode", to_string(of.mode)},
          {"exact", of.exact},
          {"condition_count", of.conditions.size()},
          {"failure_count", of.failures()},
          {"conditions", conditions}};
}

}  // namespace memprof::inline MEMPROF_ABI
