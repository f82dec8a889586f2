#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_totals.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// Parsers of the sentences of `to_text`.

namespace memprof::inline MEMPROF_ABI::detail {

/// The categories in "activation 15.3 MiB (86.7 %), parameter 625 KiB (3.5 %), others 20.0 KiB (0.1 %)"; unreadable parts are
/// skipped.
[[nodiscard]] inline std::vector<owned_bytes> categories_of(std::string_view text) {
  std::vector<owned_bytes> categories;
  while (!text.empty()) {
    const std::size_t end = text.find("), ");
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 3);
    const std::size_t share = part.rfind(" (");
    const std::size_t unit = share == std::string_view::npos || share == 0 ? share : part.rfind(' ', share - 1);
    const std::size_t number = unit == std::string_view::npos || unit == 0 ? unit : part.rfind(' ', unit - 1);
    if (share == std::string_view::npos || unit == std::string_view::npos || number == std::string_view::npos) continue;
    const std::optional<std::int64_t> bytes = short_bytes_of(part.substr(number + 1, share - number - 1));
    if (!bytes) continue;
    const std::string_view name = trimmed(part.substr(0, number));
    categories.push_back({std::string{name == "others" ? to_string(category::other) : name}, *bytes, 0});
  }
  return categories;
}

/// "17.7 MiB (18,513,664 B) of cpu at 174 ms in BACKWARD_PASS, step 1 of 20, operation forward"; earlier versions wrote "of
/// step".
inline void read_place(profile& summary, std::string_view peak) {
  constexpr std::string_view before_space = " of ";
  constexpr std::string_view before_time = " at ";
  constexpr std::string_view before_segment = " in ";
  const std::size_t begin = peak.find(before_space);
  if (begin == std::string_view::npos) return;
  space_profile& space = space_of(summary);
  const std::string_view rest = peak.substr(begin + before_space.size());
  const std::size_t time = rest.find(before_time);
  std::string_view name = rest.substr(0, time);
  constexpr std::string_view on_cores = " across all cores";
  if (name.ends_with(on_cores)) name.remove_suffix(on_cores.size());
  space.name = name;
  const std::size_t place = time == std::string_view::npos ? time : rest.find(before_segment, time);
  if (place == std::string_view::npos) return;
  const std::string_view segment = rest.substr(place + before_segment.size());
  for (std::size_t index = 0; index < space.segments.size(); ++index) {
    const std::string_view candidate = space.segments[index].segment;
    const std::string_view after = segment.starts_with(candidate) ? segment.substr(candidate.size()) : std::string_view{"?"};
    if (after.empty() || after.starts_with(" of step ") || after.starts_with(", ")) {
      space.peak_segment = static_cast<std::int64_t>(index);
    }
  }
}

/// The largest category absorbs the rounding error, so that their sum is the peak.
inline void read_categories(profile& summary, std::string_view owners) {
  space_profile& space = space_of(summary);
  std::vector<owned_bytes> categories = categories_of(owners);
  if (categories.empty()) {
    summary.provenance.absent.emplace_back("live_at_peak");
    return;
  }
  std::int64_t sum = 0;
  for (const owned_bytes& row : categories) sum = add_saturating(sum, row.bytes);
  const std::int64_t rest = subtract_saturating(space.cumulative_peak, sum);
  const auto largest =
      std::max_element(categories.begin(), categories.end(),
                       [](const owned_bytes& left, const owned_bytes& right) { return left.bytes < right.bytes; });
  if (rest > space.cumulative_peak / 50) {
    categories.push_back({std::string{to_string(category::other)}, rest, 0});  // cut off: the text was narrow
  } else {
    largest->bytes = add_saturating(largest->bytes, rest);
  }
  space.live_at_peak.bytes = space.cumulative_peak;
  space.live_at_peak.by_category = std::move(categories);
}

/// "fits gpu-16gb: 5.12 GiB of 16.0 GiB free at the peak", or "...; 512 MiB free of 16.0 GiB, 700 MiB short".
inline void read_capacity(profile& summary, std::string_view fit) {
  constexpr std::string_view fits = "fits ";
  constexpr std::string_view does_not_fit = "does not fit ";
  const bool has_room = fit.starts_with(fits);
  if ((!has_room && !fit.starts_with(does_not_fit)) || fit.find(" core") != std::string_view::npos) return;
  const std::size_t name = has_room ? fits.size() : does_not_fit.size();
  const std::size_t end_of_name = fit.find(": ");
  if (end_of_name == std::string_view::npos) return;
  const std::string_view before = has_room ? " of " : " free of ";
  const std::size_t at = has_room ? fit.find(before, end_of_name) : fit.rfind(before);
  if (at == std::string_view::npos) return;
  const std::optional<std::int64_t> capacity = leading_bytes(fit.substr(at + before.size()));
  if (!capacity) return;
  space_of(summary).capacity = *capacity;
  if (fit.substr(name, end_of_name - name) != "the device") summary.device = fit.substr(name, end_of_name - name);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
