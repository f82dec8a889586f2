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

namespace detail {
namespace {

/// What all rows held, with `other_bytes`; -1 if a row stands for no layer or for too many.
template <class Rows>
std::int64_t sum_of_rows(const Rows& rows, std::int64_t other_bytes) {
  constexpr std::int64_t most_layers = 1'000'000;
  std::int64_t sum = other_bytes;
  for (const auto& row : rows) {
    std::int64_t held = 0;
    if (row.operations < 1 || row.operations > most_layers || __builtin_mul_overflow(row.operations, row.held_bytes, &held))
      return -1;
    sum = add_saturating(sum, held);
    if (sum < 0) return -1;
  }
  return sum;
}

}  // namespace
}  // namespace detail

run_baseline parse_baseline(std::string_view text, std::string_view source) {
  const detail::json_place root{{source, "a baseline", "write it again with memprof check --write-baseline"}};
  const detail::json_rules rules{.format = baseline_json_format, .version = baseline_json_version};
  detail::json_input input{text};
  run_baseline read;
  detail::read_document(input, root.source, rules, read);
  for (std::size_t index = 0; index < read.spaces.size(); ++index) {
    const baseline_space& space = read.spaces[index];
    const detail::json_place place = root["spaces"];
    const detail::json_place here = place[index];
    for (const baseline_segment& segment : space.segments) {
      if (segment.owners.empty() || detail::sum_of_rows(segment.owners, segment.other_bytes) == segment.peak_bytes) continue;
      detail::raise_about_document(root.source, here.pointer() + ": the owners of segment '" + segment.segment +
                                                    "' do not sum to its peak_bytes, " + std::to_string(segment.peak_bytes) +
                                                    "; " + std::string{root.source.remedy});
    }
    if (detail::sum_of_rows(space.operations, space.other_bytes) != space.peak_bytes) {
      detail::raise_about_document(root.source, here.pointer() + ": its operations do not sum to its peak_bytes, " +
                                                    std::to_string(space.peak_bytes) + "; " + std::string{root.source.remedy});
    }
  }
  return read;
}

}  // namespace memprof::inline MEMPROF_ABI
