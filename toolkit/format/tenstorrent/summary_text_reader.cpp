#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_line.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_totals.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// `provenance::format` of such a text.
constexpr std::string_view summary_text_format = "summary_text";

/// What such a text lacks.
constexpr auto absent_from_summary_text = std::to_array<std::string_view>(
    {"allocations", "deallocations", "allocation_count", "deallocation_count", "begin_ns", "end_ns", "begin_unix_ns",
     "peak_time_ns", "timeline", "operations", "checkpoints", "checkpoint_count", "cores", "anomalies", "cost"});

constexpr std::string_view heading = "memprof   ";
constexpr std::size_t margin = heading.size();
constexpr std::string_view better_input = "pass the trace, or a profile written by write_json, for exact numbers";

}  // namespace

void summary_text_reader::read(std::string_view line, std::size_t number) {
  if (begins_summary(line)) {
    open(line, number);
    return;
  }
  const auto found = state_of(line);
  if (found == open_.end()) return keep_text(line);
  const std::string_view rest = line.substr(std::min(line.size(), found->first.size()));
  if (!read_line(found->second, rest)) {
    close(found->second);
    open_.erase(found);
    keep_text(line);
  }
}

std::vector<profile> summary_text_reader::finish() {
  for (auto& [label, open] : open_) close(open);
  open_.clear();
  return std::move(done_);
}

bool summary_text_reader::begins_summary(std::string_view line) noexcept {
  const std::size_t at = line.find(heading);
  if (at == std::string_view::npos || line.size() <= at + margin || line[at + margin] == ' ') return false;
  return at == 0 || std::string_view{" :]>|"}.find(line[at - 1]) != std::string_view::npos;
}

void summary_text_reader::open(std::string_view line, std::size_t number) {
  const std::string prefix{line.substr(0, line.find(heading))};
  if (const auto found = open_.find(prefix); found != open_.end()) close(found->second);
  profile& opened = (open_[prefix] = {}).summary;
  opened.complete = true;
  opened.exact = true;  // until its line "Accuracy", earlier "Numbers", says otherwise
  opened.spaces.emplace_back();
  opened.provenance.format = summary_text_format;
  opened.provenance.file = source_;
  opened.provenance.line = static_cast<std::int64_t>(number);
  opened.provenance.section = std::exchange(last_text_, {});
  opened.provenance.absent.assign(absent_from_summary_text.begin(), absent_from_summary_text.end());
  std::string_view rank = bracketed_rank(prefix);
  if (rank.empty()) rank = spelled_rank(prefix);
  if (rank.empty()) rank = labelled_rank(prefix);
  opened.process.rank = rank_number(rank);
  if (parameters_) opened.facts.push_back(to_table<model_parameters>({{*parameters_}}));
}

std::map<std::string, summary_text_reader::state, std::less<>>::iterator summary_text_reader::state_of(std::string_view line) {
  // The label of a line without text may lack its last spaces; such labels follow the line in the order of the map.
  auto longer = open_.upper_bound(line);
  if (!line.empty() && longer != open_.end() && longer->first.starts_with(line) && trimmed(longer->first) == trimmed(line))
    return longer;
  // Of the labels that do not follow the line, the last shares most with it; whatever is a prefix of the line is one of what
  // they share.
  for (std::string_view start = line; longer != open_.begin(); longer = open_.upper_bound(start)) {
    const std::string& label = std::prev(longer)->first;
    const auto shared = std::mismatch(label.begin(), label.end(), start.begin(), start.end()).first - label.begin();
    if (static_cast<std::size_t>(shared) == label.size()) return std::prev(longer);
    start = start.substr(0, static_cast<std::size_t>(shared));
  }
  return open_.end();
}

void summary_text_reader::keep_text(std::string_view line) {
  for (const std::string_view words : {"Number of parameters:", "Total parameters:"}) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) continue;
    if (const auto count = count_at(line.substr(at + words.size()))) parameters_ = count;
    return;
  }
  if (const std::string_view text = trimmed(line); names_a_section(text)) last_text_ = text;
}

bool summary_text_reader::read_line(state& open, std::string_view line) {
  if (open.where == part::segments) return read_segment(open, line);
  if (trimmed(line).empty()) return true;
  if (line.starts_with("Segments")) {
    open.where = part::segments;
    return open.has_peak;
  }
  if (line.starts_with("          ")) {
    continue_part(open, trimmed(line));
    return true;
  }
  if (line.size() <= margin || line[margin - 1] != ' ') return false;
  return begin_part(open, trimmed(line.substr(0, margin)), trimmed(line.substr(margin)));
}

bool summary_text_reader::begin_part(state& open, std::string_view name, std::string_view text) {
  if (name == "Peak") {
    if (open.has_peak) {  // of the next memory space: only the first one is read
      open.where = part::other;
      return true;
    }
    open.where = part::peak;
    open.has_peak = true;
  } else if (name == "Owners" && open.owners.empty()) {
    open.where = part::owners;
  } else if (name == "Fit" && open.fit.empty()) {
    open.where = part::fit;
  } else if (name == "At end" || name == "Now") {
    if (!open.has_end) open.summary.spaces.front().cumulative_current = leading_bytes(text).value_or(0);
    if (name == "Now") open.summary.complete = false;
    open.has_end = true;
    open.where = part::other;
  } else if (name == "Accuracy" || name == "Numbers") {
    open.summary.exact = !text.starts_with("not exact");
    open.where = part::other;
  } else {
    open.where = part::other;
  }
  continue_part(open, text);
  return true;
}

void summary_text_reader::continue_part(state& open, std::string_view text) {
  const auto append = [&](std::string& to) { to.append(to.empty() ? "" : " ").append(text); };
  if (open.where == part::peak) append(open.peak);
  if (open.where == part::fit) append(open.fit);
  if (open.where != part::owners) return;
  // A row of the table begins with bytes, the list of categories with a name.
  open.has_owner_rows = open.has_owner_rows || short_bytes_of(text.substr(0, text.find("  "))).has_value();
  if (!open.has_owner_rows) append(open.owners);
}

bool summary_text_reader::read_segment(state& open, std::string_view line) {
  profile& summary = open.summary;
  if (open.awaits_change) {
    const std::optional<value_summary> change = change_row_of(line, summary.segments_by_name.back().count);
    if (!change) return false;
    open.awaits_change = false;
    add_segment(summary, *change);
    return true;
  }
  if (const auto row = segment_row_of(line)) {
    named_segments& name = summary.segments_by_name.emplace_back();
    name.name = row->name;
    name.count = row->count;
    name.kept = 1;
    segment_summary& usage = space_of(summary).segments_by_name.emplace_back();
    usage.segment = row->name;
    usage.segment_peak = row->peak;
    open.awaits_change = !row->change;
    if (row->change) add_segment(summary, *row->change);
    return true;
  }
  // Titles below a line that names the space.
  if (line.starts_with("Segments") && summary.segments_by_name.empty()) return true;
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.size() != 2 || fields[0].find(" further name") == std::string_view::npos) return false;
  open.left_out = count_at(fields[1]).value_or(1);
  return true;
}

void summary_text_reader::add_segment(profile& summary, const value_summary& change) {
  space_profile& space = space_of(summary);
  segment_summary& usage = space.segments_by_name.back();
  usage.segment_change = change;
  segment_usage first;
  first.segment = usage.segment;
  first.segment_peak = usage.segment_peak.first;
  first.segment_change = change.first;
  compute_cumulative(space, first);
  space.segments.push_back(first);
  summary.segments.emplace_back().name = usage.segment;
}

void summary_text_reader::close(state& open) {
  if (!open.has_peak) return;  // the line only looked like the start of a summary
  profile& summary = open.summary;
  space_profile& space = space_of(summary);
  if (open.awaits_change) {
    summary.segments_by_name.pop_back();
    space.segments_by_name.pop_back();
  }
  const std::optional<std::int64_t> peak = leading_bytes(open.peak);
  if (!peak || summary.segments.empty()) {
    reason_ = "line " + std::to_string(summary.provenance.line) + " begins a summary of memprof " +
              (peak ? "without a table of segments" : "without a peak") + ": pass the trace, or a profile written by write_json";
    return;
  }
  space.cumulative_peak = *peak;
  read_place(summary, open.peak);
  read_categories(summary, open.owners);
  read_capacity(summary, open.fit);
  std::int64_t greatest = space.cumulative_peak;
  for (const segment_usage& segment : space.segments) {
    greatest = std::max({greatest, segment.segment_peak, segment.segment_change});
  }
  summary.provenance.rounding = std::max<std::int64_t>(1, greatest / 200);  // half a unit of the third digit
  summary.segment_count = open.left_out;
  for (const named_segments& name : summary.segments_by_name) {
    summary.segment_count = add_saturating(summary.segment_count, name.count);
  }
  summary.provenance.remarks.push_back("the text gives most bytes to three digits, and one row for all segments of a name (" +
                                       std::to_string(summary.segments.size()) + " of " + std::to_string(summary.segment_count) +
                                       "): " + std::string{better_input});
  done_.push_back(std::move(summary));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
