#include <memprof/config.hpp>
#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_totals.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

std::optional<std::int64_t> short_bytes_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front()) || !text.ends_with('B')) return std::nullopt;
  const std::optional<std::int64_t> bytes = scaled_bytes(text);
  if (!bytes) return std::nullopt;
  return is_negative ? -*bytes : *bytes;
}

namespace {

/// The bytes in "18,513,664 B", or in a short form.
std::optional<std::int64_t> exact_bytes_of(std::string_view text) {
  std::string digits{text};
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return short_bytes_of(digits);
}

}  // namespace

std::optional<std::int64_t> leading_bytes(std::string_view text) {
  const std::size_t number = text.find(' ');
  if (number == std::string_view::npos) return std::nullopt;
  const std::size_t unit = text.find_first_of(" ,;", number + 1);
  const std::string_view rest = unit == std::string_view::npos ? std::string_view{} : text.substr(unit);
  if (rest.starts_with(" (")) {
    if (const auto exact = exact_bytes_of(rest.substr(2, rest.find(')') - 2))) return exact;
  }
  return short_bytes_of(text.substr(0, unit));
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = line.find("  ");
    fields.push_back(line.substr(0, end));
    line = end == std::string_view::npos ? std::string_view{} : line.substr(end);
  }
  return fields;
}

namespace {

/// The values of a number that was the same each time.
value_summary constant_values(std::int64_t value, std::int64_t count) {
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(value, count, &sum)) sum = value < 0 ? INT64_MIN : INT64_MAX;
  return {value, value, value, value, sum, -1, -1};
}

/// First, last, least, greatest and mean: the last five fields of a row.
std::optional<value_summary> trailing_five_values(const std::vector<std::string_view>& fields, std::int64_t count) {
  if (fields.size() < 5) return std::nullopt;
  std::array<std::int64_t, 5> values{};
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::optional<std::int64_t> bytes = short_bytes_of(fields[fields.size() - values.size() + index]);
    if (!bytes) return std::nullopt;
    values[index] = *bytes;
  }
  return value_summary{values[0], values[1], values[2], values[3], constant_values(values[4], count).sum, -1, -1};
}

/// The bytes of a change in "change +15.7 MiB, each time".
std::optional<std::int64_t> change_after_word(std::string_view text) {
  constexpr std::string_view word = "change ";
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  return short_bytes_of(text.substr(0, text.find(',')));
}

}  // namespace

std::optional<segment_row> segment_row_of(std::string_view line) {
  std::vector<std::string_view> fields = fields_of(line);
  if (!fields.empty() && fields.back().starts_with("each time")) fields.pop_back();
  const auto count_before = [&](std::size_t numbers) -> std::optional<std::int64_t> {
    return fields.size() < numbers + 2 ? std::nullopt : count_at(fields[fields.size() - numbers - 1]);
  };
  std::size_t numbers = 5;
  segment_row row;
  if (const auto count = count_before(5); count && trailing_five_values(fields, *count)) {
    row.count = *count;
    row.peak = *trailing_five_values(fields, *count);
  } else {
    numbers = 2;
    const auto count_of_constant = count_before(2);
    if (!count_of_constant) return std::nullopt;
    const std::optional<std::int64_t> peak = short_bytes_of(fields[fields.size() - 2]);
    std::optional<std::int64_t> change = change_after_word(fields.back());
    if (!change) change = short_bytes_of(fields.back());
    if (!peak || !change) return std::nullopt;
    row.count = *count_of_constant;
    row.peak = constant_values(*peak, row.count);
    row.change = constant_values(*change, row.count);
  }
  const std::string_view count_field = fields[fields.size() - numbers - 1];
  row.name = trimmed(line.substr(0, static_cast<std::size_t>(count_field.data() - line.data())));
  return row;
}

std::optional<value_summary> change_row_of(std::string_view line, std::int64_t count) {
  const std::vector<std::string_view> fields = fields_of(line);
  return fields.size() == 6 && fields[0] == "change" && line.starts_with("  ") ? trailing_five_values(fields, count)
                                                                               : std::nullopt;
}

namespace {

/// The categories in "activation 15.3 MiB (86.7 %), parameter 625 KiB (3.5 %), others 20.0 KiB (0.1 %)"; unreadable parts are
/// skipped.
vector<owned_bytes> categories_of(std::string_view text) {
  vector<owned_bytes> categories;
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

}  // namespace

void read_place(profile& summary, std::string_view peak) {
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

void read_categories(profile& summary, std::string_view owners) {
  space_profile& space = space_of(summary);
  vector<owned_bytes> categories = categories_of(owners);
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

void read_capacity(profile& summary, std::string_view fit) {
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
