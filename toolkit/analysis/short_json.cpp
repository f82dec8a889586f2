#include <memprof/config.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

constexpr std::string_view caveats_key = "caveats";

/// Cuts every list of the document to `most` values, that of caveats to `most_caveats`. Recursion is as deep as the document,
/// which memprof itself made.
nlohmann::ordered_json with_short_lists(const nlohmann::ordered_json& of, std::size_t most, std::size_t most_caveats) {
  if (of.is_array()) {
    nlohmann::ordered_json made = nlohmann::ordered_json::array();
    for (std::size_t index = 0; index < of.size() && index < most; ++index)
      made.push_back(with_short_lists(of[index], most, most_caveats));
    return made;
  }
  if (!of.is_object()) return of;
  nlohmann::ordered_json made = nlohmann::ordered_json::object();
  nlohmann::ordered_json left_out = nlohmann::ordered_json::object();
  for (const auto& [key, value] : of.items()) {
    const std::size_t limit = key == caveats_key ? most_caveats : most;
    made[key] = with_short_lists(value, limit, most_caveats);
    if (value.is_array() && value.size() > limit) left_out[key] = value.size() - limit;
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
  const auto fits = [&](std::size_t most, std::size_t most_caveats) {
    made = detail::with_short_lists(whole, most, most_caveats);
    return detail::dump(made).size() <= most_bytes;
  };
  for (const std::size_t most : rows) {
    if (fits(most, std::numeric_limits<std::size_t>::max())) return made;
  }
  for (const std::size_t most_caveats : rows) {
    if (fits(rows.back(), most_caveats)) break;
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
