#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_json.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json peak_values(const what_if_peak& peak) {
  return {{"bytes", peak.bytes},           {"blocks", peak.blocks},           {"segment", text_or_null(peak.segment)},
          {"occurrence", peak.occurrence}, {"occurrences", peak.occurrences}, {"operation", text_or_null(peak.operation)},
          {"is_return", peak.is_return}};
}

nlohmann::ordered_json both_values(const std::vector<what_if_owner>& owners) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const what_if_owner& each : owners) {
    values.push_back({{"owner", each.owner},
                      {"bytes_before", each.before},
                      {"bytes_after", each.after},
                      {"blocks_before", each.blocks_before},
                      {"blocks_after", each.blocks_after}});
  }
  return values;
}

nlohmann::ordered_json price_values(const what_if_price& price) {
  return {{"recomputed_calls", price.recomputed_calls},
          {"recomputed_allocations", price.recomputed_allocations},
          {"recomputed_bytes", price.recomputed_bytes},
          {"held_bytes", price.held_bytes},
          {"offloaded_blocks", price.offloaded_blocks},
          {"offloaded_bytes", price.offloaded_bytes},
          {"fetched_bytes", price.fetched_bytes},
          {"offloaded_peak_bytes", price.offloaded_peak},
          {"unreturned_blocks", price.unreturned_blocks},
          {"unmoved_blocks", price.unmoved_blocks},
          {"unmoved_bytes", price.unmoved_bytes},
          {"untyped_bytes", price.untyped_bytes},
          {"retyped_blocks", price.retyped_blocks},
          {"batch_size", price.batch_size},
          {"batch_ratio", price.batch_ratio},
          {"scaled_bytes", price.scaled_bytes},
          {"unused_bytes", price.unused_bytes},
          {"unmatched_uses", price.unmatched_uses},
          {"unshaped_bytes", price.unshaped_bytes},
          {"inner_batch_bytes", price.inner_batch_bytes}};
}

nlohmann::ordered_json ranked_values(const std::vector<ranked_owner>& owners) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const ranked_owner& each : owners)
    values.push_back({{"owner", each.owner}, {"live_bytes", each.live}, {"blocks", each.blocks}, {"peak_bytes", each.peak}});
  return values;
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json to_json(const what_if_result& of) {
  return {{"format", what_if_json_format},
          {"version", what_if_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"space", of.space},
          {"exact", of.exact},
          {"before", detail::peak_values(of.before)},
          {"after", detail::peak_values(of.after)},
          {"saved_bytes", of.saved()},
          {"changed_blocks", of.changed_blocks},
          {"reserved_bytes_before", of.reserved_before},
          {"reserved_bytes_after", of.reserved_after},
          {"price", detail::price_values(of.price)},
          {"owners", detail::both_values(of.owners)},
          {"categories", detail::both_values(of.categories)}};
}

nlohmann::ordered_json to_json(const owner_ranking& of) {
  return {{"format", what_if_json_format},
          {"version", what_if_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"space", of.space},
          {"exact", of.exact},
          {"peak_bytes", of.peak},
          {"ranking", detail::ranked_values(of.owners)}};
}

nlohmann::ordered_json to_json(const target_answer& of) {
  return {{"format", what_if_json_format},
          {"version", what_if_json_version},
          {"verdict", verdict_of(of)},
          {"caveats", caveats_of(of)},
          {"space", of.space},
          {"exact", of.exact},
          {"peak_bytes", of.peak},
          {"target_bytes", of.target},
          {"possible", of.is_possible()},
          {"least_bytes", of.least},
          {"new_peak_bytes", of.new_peak},
          {"smallest", of.is_smallest},
          {"without", detail::ranked_values(of.owners)}};
}

}  // namespace memprof::inline MEMPROF_ABI
