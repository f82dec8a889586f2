#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

double in_megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p20; }

/// The name of 2^20 bytes: "MB" in the tables of a log of tt-train's tracker, as in the log and in analyze_memory.py.
std::string megabyte_name(const profile& of) { return is_tracker_log(of) ? " MB" : " MiB"; }

/// "1,863.25 MiB".
std::string grouped_megabytes(const profile& of, std::int64_t bytes) {
  return with_thousands(decimal(in_megabytes(bytes), 2)) + megabyte_name(of);
}

/// "+0.77%", "-1.00%", "+0.00%".
std::string signed_percent(double value) { return (std::signbit(value) ? "" : "+") + decimal(value, 2) + "%"; }

}  // namespace
}  // namespace detail

namespace detail {

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return decimal(whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

}  // namespace detail

namespace detail {
namespace {

void append_rule(std::string& text, const std::string& line) {
  const std::string rule(80, '=');
  text += '\n' + rule + '\n' + line + '\n' + rule + '\n';
}

/// "  Label:                value", aligned as in the script.
void append_labelled(std::string& text, std::string_view label, const std::string& value) {
  constexpr std::size_t width = 22;
  std::string start{label};
  start.resize(std::max(width, start.size() + 1), ' ');
  text += "  " + start + value + '\n';
}

/// The label of a measured size; for logs, the script's.
std::string actual_label(const profile& of, size_source from) {
  if (!of.provenance.format.empty()) return "Actual (from logs):";
  return from == size_source::categories ? "Actual (category):" : "Actual (phases):";
}

void append_comparison(std::string& text, std::string_view title, const profile& of, const compared_size& size) {
  if (!size.actual) return;
  text += "\n--- " + std::string{title} + " ---\n";
  append_labelled(text, actual_label(of, size.from), grouped_megabytes(of, *size.actual));
  append_labelled(text, "Expected (input):", size.expected ? grouped_megabytes(of, *size.expected) : "unknown");
  if (const auto difference = size.difference_percent()) append_labelled(text, "Difference:", signed_percent(*difference));
}

}  // namespace
}  // namespace detail

namespace detail {

std::string position_text(const profile& of, std::size_t index) {
  const std::int64_t number = index < of.segments.size() ? of.segments[index].number : -1;
  const auto kept = static_cast<std::int64_t>(of.segments.size());
  return "(" + std::to_string((number < 0 ? static_cast<std::int64_t>(index) : number) + 1) + " of " +
         std::to_string(std::max(of.segment_count, kept)) + ")";
}

}  // namespace detail

namespace detail {
namespace {

/// The device's memory, and its source if the caller did not name it; or how to name a device.
std::string device_text(const profile& of, const space_profile& space, const memory_breakdown& breakdown) {
  if (!breakdown.device_memory)
    return "no device named: pass --device NAME or --device-memory SIZE to check whether the peak fits";
  std::string text = grouped_megabytes(of, *breakdown.device_memory);
  if (breakdown.device_memory_from == device_memory_source::assumed)
    return text + " (the default for a log of tt-train's tracker; --device or --device-memory names another)";
  if (breakdown.device_memory_from != device_memory_source::profile) return text;
  const std::string device = of.device.empty() ? std::string{"its device"} : on_one_line(of.device);
  return text + " (from the profile: " + on_one_line(space.name) + " of " + device + ")";
}

std::string fit_text(const profile& of, const memory_breakdown& breakdown) {
  const std::optional<bool> fits = breakdown.fits();
  if (!fits) return "unknown, the peak is negative";
  const std::int64_t room = subtract_saturating(*breakdown.device_memory, breakdown.peak);
  return *fits ? "yes, " + grouped_megabytes(of, room) + " to spare" : "no, " + grouped_megabytes(of, -room) + " too much";
}

void append_peak_usage(std::string& text, const analyzed_space& analyzed) {
  const profile& of = *analyzed.profile;
  const space_profile& space = analyzed.usage();
  const memory_breakdown& breakdown = analyzed.breakdown;
  text += "\n--- Peak DRAM Usage ---\n";
  append_labelled(text, "Peak DRAM:", grouped_megabytes(of, breakdown.peak));
  append_labelled(text, "Device Memory:", device_text(of, space, breakdown));
  if (const auto usage = breakdown.usage_percent()) append_labelled(text, "Usage:", decimal(*usage, 2) + "%");
  if (breakdown.device_memory) append_labelled(text, "Fits:", fit_text(of, breakdown));
  if (space.peak_segment < 0) return;
  const auto segment = static_cast<std::size_t>(space.peak_segment);
  append_labelled(text, "Peak Segment:", on_one_line(space.segments[segment].segment) + " " + position_text(of, segment));
}

/// The spaces that this analysis is not about.
void append_other_spaces(std::string& text, const analyzed_space& analyzed) {
  const profile& of = *analyzed.profile;
  if (of.spaces.size() < 2) return;
  text += "\n--- Other Memory Spaces ---\n";
  for (const space_profile& other : of.spaces) {
    if (&other == &analyzed.usage()) continue;
    std::string value = has_blocks_on_cores(other) ? "peak of a core " + grouped_megabytes(of, other.cores.peaks.total)
                                                   : "peak " + grouped_megabytes(of, other.cumulative_peak) + ", " +
                                                         grouped_megabytes(of, other.cumulative_current) + " at the end";
    if (other.capacity != 0) value += ", of " + grouped_megabytes(of, other.capacity);
    append_labelled(text, on_one_line(other.name) + ":", value);
  }
  text += "  --space NAME shows one of them, --space all shows each.\n";
}

void append_parts(std::string& text, const profile& of, const memory_breakdown& breakdown) {
  text += breakdown.parts_are_live_at_peak ? "\n--- Peak Breakdown (live at the peak) ---\n"
                                           : "\n--- Peak Breakdown (by phases) ---\n";
  // As in the picture: the top part first.
  for (std::size_t index = peak_parts; index-- > 0;) {
    const bool gradients = index == static_cast<std::size_t>(peak_part::gradients);
    const std::string title{gradients && breakdown.parts_are_live_at_peak ? "Gradients" : peak_part_titles[index]};
    append_labelled(text, title + ":",
                    right_aligned(grouped_megabytes(of, breakdown.parts[index]), 14) +
                        right_aligned(percent_of(breakdown.parts[index], breakdown.peak), 9));
  }
  if (breakdown.excess() == 0) return;
  text += "  The parts without Other add up to " + grouped_megabytes(of, breakdown.accounted()) + ", " +
          grouped_megabytes(of, breakdown.excess()) + " more than the peak: they were not live at the same time.\n";
}

/// The segments by name, for a run with more than `max_single_segments` of them: those with the greatest peaks if there are too
/// many names.
void append_names_of_segments(std::string& text, const profile& of, const space_profile& space) {
  constexpr std::size_t most = 24;
  constexpr std::size_t width = 16;
  vector<segments_of_name> names = segments_by_name(of, space);
  if (names.size() > most) names = segments_by_family(names);
  std::vector<std::size_t> kept(names.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  std::int64_t left_out = 0;
  if (names.size() > most) {
    std::stable_sort(kept.begin(), kept.end(), [&](std::size_t left, std::size_t right) {
      return names[left].segment_peak.greatest > names[right].segment_peak.greatest;
    });
    left_out = static_cast<std::int64_t>(kept.size() - most);
    kept.resize(most);
    std::sort(kept.begin(), kept.end());
  }
  text += "\n--- Segments, by name ---\n" + right_aligned("Count", 10);
  for (const std::string_view title : {"Max Peak", "Mean Change", "Last Current"}) {
    text += right_aligned(std::string{title}, width);
  }
  text += "  Segment\n";
  const auto at = static_cast<std::size_t>(space.peak_segment);
  const std::string peak_name = space.peak_segment < 0 ? std::string{} : space.segments[at].segment;
  for (const std::size_t index : kept) {
    const segments_of_name& name = names[index];
    const std::int64_t mean = name.count == 0 ? 0 : name.segment_change.sum / name.count;
    text += right_aligned(with_thousands(std::to_string(name.count)), 10);
    text += right_aligned(grouped_megabytes(of, name.segment_peak.greatest), width);
    text += right_aligned((mean < 0 ? "" : "+") + grouped_megabytes(of, mean), width);
    text += right_aligned(grouped_megabytes(of, name.cumulative_current.last), width);
    text += "  " + (name.stands_for_others ? std::string{"(all other names)"} : on_one_line(name.name));
    text += space.peak_segment >= 0 && name.name == peak_name ? "  <- overall peak\n" : "\n";
  }
  if (left_out > 0) text += "  (" + counted(left_out, "name", "names") + " not shown)\n";
  const std::int64_t folded = of.segment_count - static_cast<std::int64_t>(space.segments.size());
  text += folded <= 0
              ? "  --json has every segment.\n"
              : "  --json has the " + counted(of.segment_count - folded, "segment", "segments") + " that the profile keeps.\n";
}

/// A line for each segment or, if there are many, for each name.
void append_segment_table(std::string& text, const profile& of, const space_profile& space) {
  if (space.segments.empty()) return;
  constexpr std::size_t width = 16;
  constexpr std::int64_t max_single_segments = 16;
  if (std::max(of.segment_count, static_cast<std::int64_t>(space.segments.size())) > max_single_segments) {
    append_names_of_segments(text, of, space);
    return;
  }
  text += "\n--- Segments ---\n";
  for (const std::string_view title : {"Segment Peak", "Segment Change", "Cumul. Peak", "Cumul. Current"}) {
    text += right_aligned(std::string{title}, width);
  }
  text += "  Segment\n";
  for (std::size_t index = 0; index < space.segments.size(); ++index) {
    const bool is_peak = space.peak_segment == static_cast<std::int64_t>(index);
    const segment_usage& segment = space.segments[index];
    text += right_aligned(grouped_megabytes(of, segment.segment_peak), width);
    text += right_aligned((segment.segment_change < 0 ? "" : "+") + grouped_megabytes(of, segment.segment_change), width);
    text += right_aligned(grouped_megabytes(of, segment.cumulative_peak), width);
    text += right_aligned(grouped_megabytes(of, segment.cumulative_current), width);
    text += "  " + on_one_line(segment.segment) + (is_peak ? "  <- overall peak\n" : "\n");
  }
}

void append_notes(std::string& text, const memory_breakdown& breakdown) {
  if (breakdown.remarks.empty()) return;
  text += "\n--- Notes ---\n";
  for (const std::string& remark : breakdown.remarks) text += "  " + on_one_line(remark) + ".\n";
}

/// Where the numbers come from: "train.log, line 12, rank 3".
std::string place_text(const analyzed_space& analyzed) {
  const provenance& from = analyzed.profile->provenance;
  std::string text = on_one_line(from.file.empty() ? "this process" : from.file);
  text += from.line != 0 ? ", line " + std::to_string(from.line) : ", memory space " + on_one_line(analyzed.usage().name);
  const std::int64_t rank = analyzed.profile->process.rank;
  if (rank >= 0) text += ", rank " + std::to_string(rank);
  return text;
}

/// The file's name without its folders.
std::string file_title(const provenance& from) {
  const std::string_view file = std::string_view{from.file}.substr(from.file.rfind('/') + 1);
  return on_one_line(file.empty() ? "profile" : file);
}

}  // namespace
}  // namespace detail

std::vector<std::string> titles_of(const std::vector<analyzed_space>& analyzed) {
  std::vector<std::string> titles;
  for (const analyzed_space& one : analyzed) {
    const provenance& from = one.profile->provenance;
    titles.push_back(from.section.empty() ? detail::file_title(from) : detail::on_one_line(from.section));
    if (one.profile->process.rank >= 0) titles.back() += " (rank " + std::to_string(one.profile->process.rank) + ")";
  }
  // Appends what differs to each of several equal titles; no change if nothing differs.
  const auto disambiguate = [&](auto what) {
    struct twins {
      std::string word;  // of the first of them
      bool differ = false;
    };
    std::unordered_map<std::string, twins> twins_of;
    std::vector<std::string> words;
    for (std::size_t index = 0; index < analyzed.size(); ++index) {
      words.push_back(what(analyzed[index]));
      twins& all = twins_of.try_emplace(titles[index], twins{words.back()}).first->second;
      all.differ = all.differ || all.word != words.back();
    }
    for (std::size_t index = 0; index < analyzed.size(); ++index) {
      if (!twins_of.at(titles[index]).differ) continue;
      std::string& title = titles[index];
      if (words[index].ends_with(title)) {
        title = words[index];  // a path replaces its own file name
      } else {
        title += ", " + words[index];
      }
    }
  };
  disambiguate([](const analyzed_space& one) { return detail::file_title(one.profile->provenance); });
  disambiguate([](const analyzed_space& one) { return detail::on_one_line(one.profile->provenance.file); });
  disambiguate([](const analyzed_space& one) { return "line " + std::to_string(one.profile->provenance.line); });
  disambiguate([](const analyzed_space& one) { return detail::on_one_line(one.usage().name); });
  return titles;
}

std::string to_text(const analyzed_space& analyzed, const std::string& title) {
  const memory_breakdown& breakdown = analyzed.breakdown;
  std::string text;
  detail::append_rule(text, "Section: " + title);
  if (breakdown.parameters) {
    text += "Number of parameters: " + detail::with_thousands(std::to_string(*breakdown.parameters)) + '\n';
  }
  text += "Read from: " + detail::place_text(analyzed) + '\n';
  detail::append_comparison(text, "Model Size", *analyzed.profile, breakdown.model);
  detail::append_comparison(text, "Optimizer State", *analyzed.profile, breakdown.optimizer);
  if (breakdown.activations.actual) {
    text += "\n--- Activations Size ---\n";
    detail::append_labelled(text, "Activations:", detail::grouped_megabytes(*analyzed.profile, *breakdown.activations.actual));
  }
  detail::append_comparison(text, "Gradients Size", *analyzed.profile, breakdown.gradients);
  detail::append_peak_usage(text, analyzed);
  detail::append_parts(text, *analyzed.profile, breakdown);
  detail::append_segment_table(text, *analyzed.profile, analyzed.usage());
  detail::append_other_spaces(text, analyzed);
  detail::append_notes(text, breakdown);
  return text;
}

std::string verdict_of(const std::vector<analyzed_space>& analyzed) {
  if (analyzed.empty()) return "nothing was analyzed";
  const auto greatest = std::max_element(
      analyzed.begin(), analyzed.end(),
      [](const analyzed_space& left, const analyzed_space& right) { return left.breakdown.peak < right.breakdown.peak; });
  const memory_breakdown& breakdown = greatest->breakdown;
  std::string text = titles_of(analyzed)[static_cast<std::size_t>(greatest - analyzed.begin())] + ": peak " +
                     detail::short_and_exact_bytes(breakdown.peak) + " of " + detail::on_one_line(greatest->usage().name);
  for (std::size_t index = peak_parts; index-- > 0;) {
    if (breakdown.parts[index] == 0) continue;
    text += std::string{", "} + std::string{peak_part_titles[index]} + " " + detail::short_bytes(breakdown.parts[index]);
  }
  if (const std::optional<bool> fits = breakdown.fits()) {
    const std::int64_t left = detail::subtract_saturating(*breakdown.device_memory, breakdown.peak);
    text += *fits ? "; fits " + detail::short_bytes(*breakdown.device_memory) + " with " + detail::short_bytes(left) + " left"
                  : "; does not fit: " + detail::short_bytes(-left) + " over " + detail::short_bytes(*breakdown.device_memory);
  }
  if (analyzed.size() > 1)
    text += " (the greatest of " + detail::counted(static_cast<std::int64_t>(analyzed.size()), "summary", "summaries") + ")";
  return text;
}

std::vector<std::string> caveats_of(const std::vector<analyzed_space>& analyzed) {
  std::vector<std::vector<std::string>> remarks;
  remarks.reserve(analyzed.size());
  for (const analyzed_space& one : analyzed) remarks.push_back(one.breakdown.remarks);
  return titled_remarks(titles_of(analyzed), remarks);
}

std::string to_text(const std::vector<analyzed_space>& analyzed, const breakdown_options& options) {
  std::string text = "Found " + std::to_string(analyzed.size()) + " memory usage summary/summaries\n";
  if (!options.model_size) {
    std::optional<std::int64_t> shown;
    for (const analyzed_space& one : analyzed) {
      const memory_breakdown& breakdown = one.breakdown;
      if (!breakdown.parameters || breakdown.parameters == shown) continue;
      shown = breakdown.parameters;
      const bool is_of_log = !one.profile->provenance.format.empty();
      text += std::string{"Model size not provided, calculated from "} + (is_of_log ? "logs: " : "the number of parameters: ") +
              detail::decimal(detail::in_megabytes(*breakdown.model.expected), 2) + detail::megabyte_name(*one.profile) + " (" +
              detail::with_thousands(std::to_string(*shown)) + " parameters, assuming bf16)\n";
    }
    if (!shown) text += "No expected model size to compare with: pass --model-size\n";
  }
  const std::vector<std::string> titles = titles_of(analyzed);
  for (std::size_t index = 0; index < analyzed.size(); ++index) text += to_text(analyzed[index], titles[index]);
  detail::append_rule(text, "Analysis complete");
  return text + '\n';
}

}  // namespace memprof::inline MEMPROF_ABI
