#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_reader.hpp>
#include <memprof/profile/json_writer.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/baseline_json.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

nlohmann::ordered_json to_json(const run_baseline& of) {
  nlohmann::ordered_json document{{"format", baseline_json_format}, {"version", baseline_json_version}};
  document.update(detail::to_value(of));
  return document;
}

run_baseline parse_baseline(std::string_view text, std::string_view source) {
  constexpr std::int64_t most_layers = 1'000'000;
  const detail::json_place root{{source, "a baseline", "write it again with memprof check --write-baseline"}};
  const detail::json_rules rules{.format = baseline_json_format, .version = baseline_json_version};
  detail::json_input input{text};
  run_baseline read;
  detail::read_document(input, root.source, rules, read);
  for (std::size_t index = 0; index < read.spaces.size(); ++index) {
    const baseline_space& space = read.spaces[index];
    const detail::json_place place = root["spaces"];
    const detail::json_place here = place[index];
    std::int64_t sum = space.other_bytes;
    for (const baseline_operation& row : space.operations) {
      std::int64_t held = 0;
      const bool is_too_much =
          row.operations < 1 || row.operations > most_layers || __builtin_mul_overflow(row.operations, row.held_bytes, &held);
      sum = is_too_much ? -1 : detail::add_saturating(sum, held);
      if (sum < 0) break;
    }
    if (sum != space.peak_bytes) {
      detail::raise_about_document(root.source, here.pointer() + ": its operations do not sum to its peak_bytes, " +
                                                    std::to_string(space.peak_bytes) + "; " + std::string{root.source.remedy});
    }
  }
  return read;
}

}  // namespace memprof::inline MEMPROF_ABI
