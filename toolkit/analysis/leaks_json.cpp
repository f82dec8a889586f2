#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/leaks_json.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json owner_values(const leak_report& of, const std::vector<growing_owner>& owners) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  const auto step_or_null = [](std::int64_t step) {
    return step < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(step);
  };
  const auto age_or_null = [&](std::int64_t step) {
    return step < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(of.age_of(step));
  };
  for (const growing_owner& owner : owners) {
    values.push_back(
        {{"space", owner.space},
         {"operation", text_or_null(owner.operation)},
         {"operations", owner.operations},
         {"bytes_per_step", owner.trend.per_step},
         {"since_step", owner.trend.since_step},
         {"until_step", owner.trend.until_step},
         {"first_bytes", owner.trend.first},
         {"last_bytes", owner.trend.last},
         {"blocks", owner.blocks},
         {"oldest_step", step_or_null(owner.oldest_step)},
         {"oldest_age", age_or_null(owner.oldest_step)},
         {"oldest_bytes", owner.oldest_bytes},
         {"newest_step", step_or_null(owner.newest_step)},
         {"newest_age", age_or_null(owner.newest_step)},
         {"newest_bytes", owner.newest_bytes},
         {"caller", text_or_null(owner.caller)},
         {"caller_share", owner.caller.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(owner.caller_share)}});
  }
  return values;
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const leak_report& of) {
  nlohmann::ordered_json spaces = nlohmann::ordered_json::array();
  for (const leak_report::space_row& space : of.spaces) {
    spaces.push_back({{"space", space.name},
                      {"last_bytes", space.last},
                      {"capacity_bytes", space.capacity},
                      {"bytes_per_step", space.per_step},
                      {"made_up_for", space.is_made_up_for}});
  }
  return {{"format", leaks_json_format},
          {"version", leaks_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"steps", of.steps},
          {"missing_steps", of.missing_steps},
          {"steps_count_from", 0},
          {"segment", detail::text_or_null(of.segment)},
          {"exact", of.exact},
          {"enough_steps", of.is_long_enough()},
          {"spaces", spaces},
          {"grows", detail::owner_values(of, of.growing)},
          {"unclear", detail::owner_values(of, of.unclear)},
          {"levels_off", detail::owner_values(of, of.levelled)}};
}

}  // namespace memprof::inline MEMPROF_ABI
