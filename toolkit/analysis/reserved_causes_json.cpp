#include <memprof/config.hpp>
#include <memprof/detail/byte_size.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/analysis/reserved_causes_json.hpp>
#include <memprof/trace/label.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

[[nodiscard]] nlohmann::ordered_json moment_json(const fragmentation_moment& at) {
  std::string_view pool = at.stream;
  const std::string stream{detail::take_until(detail::name_separator, pool)};
  nlohmann::ordered_json row = to_json(at.parts);
  row["requested_bytes"] = at.requested;
  row["stream"] = detail::text_or_null(stream);
  row["pool"] = detail::text_or_null(std::string{pool});
  return row;
}

[[nodiscard]] nlohmann::ordered_json trial_json(const setting_trial& of) {
  return {{"setting", of.setting},
          {"reserved_peak_bytes", of.reserved_peak},
          {"serves_failed_request",
           of.serves_failure ? nlohmann::ordered_json(*of.serves_failure) : nlohmann::ordered_json(nullptr)}};
}

[[nodiscard]] nlohmann::ordered_json space_json(const reserved_causes& of) {
  const setting_trial* const help = of.help();
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const setting_trial& trial : of.trials) trials.push_back(trial_json(trial));
  return {{"space", of.space},
          {"from", of.is_modelled ? "model" : "addresses"},
          {"at_peak", moment_json(of.found.at_peak)},
          {"at_out_of_memory", of.found.at_failure ? moment_json(*of.found.at_failure) : nlohmann::ordered_json(nullptr)},
          {"setting", of.setting},
          {"setting_recorded", of.is_setting_recorded},
          {"modelled", of.is_too_long ? nlohmann::ordered_json(nullptr) : trial_json(of.as_it_was)},
          {"trials", trials},
          {"helps", help == nullptr ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(help->setting)}};
}

}  // namespace

nlohmann::ordered_json to_json(const fragmentation& parts) {
  return {{"reserved_bytes", parts.reserved}, {"allocated_bytes", parts.allocated()},
          {"rounding_bytes", parts.rounding}, {"unused_bytes", parts.unused()},
          {"hard_bytes", parts.hard},         {"soft_bytes", parts.soft},
          {"stream_bytes", parts.stream},     {"pending_bytes", parts.pending}};
}

nlohmann::ordered_json to_json(const std::vector<reserved_causes>& of) {
  nlohmann::ordered_json spaces = nlohmann::ordered_json::array();
  for (const reserved_causes& each : of) spaces.push_back(space_json(each));
  return spaces;
}

}  // namespace memprof::inline MEMPROF_ABI
