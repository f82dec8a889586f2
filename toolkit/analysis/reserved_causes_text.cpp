#include <memprof/config.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/answer_text.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/analysis/reserved_causes_text.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// " than default"; "" if it is unknown.
[[nodiscard]] std::string other_than(std::string_view asking) {
  std::string_view stream = asking;
  const std::string_view name = detail::take_until(detail::name_separator, stream);
  return name.empty() ? std::string{} : " than " + detail::on_one_line(name);
}

[[nodiscard]] std::string setting_name(const std::string& setting) { return setting.empty() ? "the default settings" : setting; }

void add_moment(detail::marked_text& line, const fragmentation_moment& at) {
  line.add_bytes(at.parts.unused(), detail::emphasis::strong).add(" of ").add_bytes(at.parts.reserved).add(" reserved");
  if (at.parts.unused() != 0) line.add(": " + to_text(at.parts, at.stream));
  line.end_line();
}

void add_unused(detail::marked_text& line, const reserved_causes& of) {
  line.add_name(of.space).add(", at the peak of what was reserved: ");
  add_moment(line, of.found.at_peak);
  if (of.found.at_failure) {
    line.add("out of memory requesting ").add_bytes(of.found.at_failure->requested).add(": ");
    add_moment(line, *of.found.at_failure);
  }
}

void add_help(detail::marked_text& line, const reserved_causes& of) {
  if (of.is_too_long) {
    line.add("settings not tried: more than ").add_count(most_replayed_steps).add(" allocations and frees").end_line();
    return;
  }
  const std::int64_t now = of.as_it_was.reserved_peak;
  const setting_trial* const help = of.help();
  if (help == nullptr) {
    line.add("no setting that was tried reserves notably less than ").add_bytes(now).add(", in the model of the allocator");
    line.end_line();
    return;
  }
  line.add(setting_name(help->setting), detail::emphasis::strong).add(": ").add_bytes(help->reserved_peak);
  line.add(" reserved in place of ").add_bytes(now);
  if (help->serves_failure.value_or(false)) line.add(", and the request that failed is served");
  line.add(", in the model of the allocator");
  if (!of.setting.empty()) line.add("; now " + detail::on_one_line(of.setting));
  line.end_line();
}

}  // namespace

std::string to_text(const fragmentation& parts, std::string_view asking) {
  struct cause {
    std::int64_t bytes;
    std::string what;
  };
  cause causes[] = {{parts.hard, "hard (between blocks of a segment)"},
                    {parts.soft, "soft (free segments and ends of segments, which never merge)"},
                    {parts.stream, "stream (of streams or pools other" + other_than(asking) + ")"},
                    {parts.pending, "freed but in use by streams"}};
  std::stable_sort(std::begin(causes), std::end(causes),
                   [](const cause& left, const cause& right) { return left.bytes > right.bytes; });
  std::string text;
  for (const cause& each : causes) {
    if (each.bytes > 0) text += (text.empty() ? "" : ", ") + detail::short_bytes(each.bytes) + ' ' + each.what;
  }
  return text;
}

std::string to_text(const reserved_causes& of, const text_options& options) {
  detail::answer_text text{options};
  text.add_lines("Unused", [&](detail::marked_text& line) { add_unused(line, of); });
  text.add_lines("Helps", [&](detail::marked_text& line) { add_help(line, of); });
  return text.take();
}

}  // namespace memprof::inline MEMPROF_ABI
