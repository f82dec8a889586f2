#include <memprof/config.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Cuts every list of the document to `most` values. Recursion is as deep as the document, which memprof itself made.
nlohmann::ordered_json with_short_lists(const nlohmann::ordered_json& of, std::size_t most) {
  if (of.is_array()) {
    nlohmann::ordered_json made = nlohmann::ordered_json::array();
    for (std::size_t index = 0; index < of.size() && index < most; ++index) made.push_back(with_short_lists(of[index], most));
    return made;
  }
  if (!of.is_object()) return of;
  nlohmann::ordered_json made = nlohmann::ordered_json::object();
  nlohmann::ordered_json left_out = nlohmann::ordered_json::object();
  for (const auto& [key, value] : of.items()) {
    const bool is_kept = key == "caveats";
    made[key] = is_kept ? value : with_short_lists(value, most);
    if (!is_kept && value.is_array() && value.size() > most) left_out[key] = value.size() - most;
  }
  if (!left_out.empty()) made["left_out"] = left_out;
  return made;
}

}  // namespace
}  // namespace detail

nlohmann::ordered_json short_answer(const nlohmann::ordered_json& whole, std::size_t most_bytes) {
  if (detail::dump(whole).size() <= most_bytes) return whole;
  constexpr std::array<std::size_t, 9> rows{32, 16, 12, 8, 6, 4, 3, 2, 1};
  nlohmann::ordered_json made;
  for (const std::size_t most : rows) {
    made = detail::with_short_lists(whole, most);
    if (detail::dump(made).size() <= most_bytes) break;
  }
  return made;
}

nlohmann::ordered_json with_caveats(nlohmann::ordered_json answer, const std::vector<std::string>& more) {
  for (const std::string& each : more) {
    if (!each.empty()) answer["caveats"].push_back(each);
  }
  return answer;
}

}  // namespace memprof::inline MEMPROF_ABI
