#pragma once

#include <memprof/format/log_line.hpp>
#include <memprof/format/memory_summary.hpp>
#include <memprof/format/summary_text_line.hpp>
#include <memprof/format/tracker_totals.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::detail {

/// Finds the summaries of `to_text` in a log, line by line, with colours already taken out.
///
/// Peak and final usage are exact. All else is what such a text still has: bytes of three digits, the categories at the peak, and
/// for each name of segments its first values, in place of all of them. A remark says so, and what to read for exact numbers.
/// Lines may stand behind a label that is the same for a whole summary, as launchers put the rank before each line.
class summary_text_reader {
 public:
  explicit summary_text_reader(std::string_view source) : source_{source} {}

  void read(std::string_view line, std::size_t number) {
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

  /// The summaries, in the order in which they end.
  [[nodiscard]] std::vector<memory_summary> finish() {
    for (auto& [label, open] : open_) close(open);
    open_.clear();
    return std::move(done_);
  }

  /// Why a text that began as a summary is none; empty if there was no such text.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr std::string_view heading = "memprof   ";
  static constexpr std::size_t margin = heading.size();

  enum class part { other, peak, owners, fit, end, segments };

  struct state {
    memory_summary summary;
    part where = part::other;
    std::string peak;
    std::string owners;
    std::string fit;
    bool owner_rows = false;  ///< the table has begun
    bool has_peak = false;
    std::string pending;  ///< the name whose change the next row has
    std::int64_t segments = 0;
    std::int64_t left_out = 0;  ///< segments without a row of their own
  };

  /// The heading at the beginning of the line, or behind a label that ends with a space or a bracket.
  [[nodiscard]] static bool begins_summary(std::string_view line) noexcept {
    const std::size_t at = line.find(heading);
    if (at == std::string_view::npos || line.size() <= at + margin || line[at + margin] == ' ') return false;
    return at == 0 || std::string_view{" :]>|"}.find(line[at - 1]) != std::string_view::npos;
  }

  void open(std::string_view line, std::size_t number) {
    const std::string prefix{line.substr(0, line.find(heading))};
    if (const auto found = open_.find(prefix); found != open_.end()) close(found->second);
    state& opened = open_[prefix] = {};
    opened.summary.source = source_;
    opened.summary.line = number;
    opened.summary.section = std::exchange(last_text_, {});
    std::string_view rank = bracketed_rank(prefix);
    if (rank.empty()) rank = spelled_rank(prefix);
    if (rank.empty()) rank = labelled_rank(prefix);
    opened.summary.rank = rank;
    opened.summary.parameters = parameters_;
  }

  /// The summary that the line goes on with: the one with the longest label that the line has.
  [[nodiscard]] std::map<std::string, state, std::less<>>::iterator state_of(std::string_view line) {
    auto best = open_.end();
    for (auto candidate = open_.begin(); candidate != open_.end(); ++candidate) {
      const std::string_view label = trimmed(candidate->first);
      const bool matches = line.starts_with(candidate->first) ||
                           (line.size() < candidate->first.size() && !label.empty() && line.starts_with(label));
      if (matches && (best == open_.end() || candidate->first.size() > best->first.size())) best = candidate;
    }
    return best;
  }

  /// What may title a summary, and how many parameters its model has.
  void keep_text(std::string_view line) {
    for (const std::string_view words : {"Number of parameters:", "Total parameters:"}) {
      const std::size_t at = line.find(words);
      if (at == std::string_view::npos) continue;
      if (const auto count = count_at(line.substr(at + words.size()))) parameters_ = count;
      return;
    }
    if (const std::string_view text = trimmed(line); !text.empty() && !text.starts_with('#')) last_text_ = text;
  }

  /// Whether the line belongs to the summary.
  bool read_line(state& open, std::string_view line) {
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

  static bool begin_part(state& open, std::string_view name, std::string_view text) {
    if (name == "Peak") {
      if (open.has_peak) {  // of the next memory space: the first one is the summary's
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
      if (open.where != part::end && open.summary.final_usage == 0) open.summary.final_usage = leading_bytes(text).value_or(0);
      open.where = part::end;
    } else {
      open.where = part::other;
    }
    continue_part(open, text);
    return true;
  }

  static void continue_part(state& open, std::string_view text) {
    const auto append = [&](std::string& to) { to += (to.empty() ? "" : " ") + std::string{text}; };
    if (open.where == part::peak) append(open.peak);
    if (open.where == part::fit) append(open.fit);
    if (open.where != part::owners) return;
    // A row of the table begins with bytes, the sentence of categories with a name.
    open.owner_rows = open.owner_rows || short_bytes_of(text.substr(0, text.find("  "))).has_value();
    if (!open.owner_rows) append(open.owners);
  }

  static bool read_segment(state& open, std::string_view line) {
    if (!open.pending.empty()) {
      const std::optional<std::int64_t> change = change_row_of(line);
      if (!change) return false;
      open.summary.segments.back().segment_change = *change;
      compute_cumulative_of_last(open.summary);
      open.pending.clear();
      return true;
    }
    if (const auto row = segment_row_of(line)) {
      segment_usage& usage = open.summary.segments.emplace_back();
      usage.segment = row->name;
      usage.segment_peak = row->peak;
      open.segments += row->count;
      if (row->change) {
        usage.segment_change = *row->change;
        compute_cumulative_of_last(open.summary);
      } else {
        open.pending = row->name;
      }
      return true;
    }
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != 2 || fields[0].find(" further name") == std::string_view::npos) return false;
    open.left_out = count_at(fields[1]).value_or(1);
    return true;
  }

  /// The cumulative values of the last segment, which continues those before it.
  static void compute_cumulative_of_last(memory_summary& summary) {
    segment_usage last = std::move(summary.segments.back());
    summary.segments.pop_back();
    compute_cumulative(summary, last);
    summary.segments.push_back(std::move(last));
  }

  void close(state& open) {
    memory_summary& summary = open.summary;
    if (!open.has_peak) return;  // a line that only looked like the first of a summary
    if (!open.pending.empty()) summary.segments.pop_back();
    const std::optional<std::int64_t> peak = leading_bytes(open.peak);
    if (!peak || summary.segments.empty()) {
      reason_ = "line " + std::to_string(summary.line) + " begins a summary of memprof " +
                (peak ? "without a table of segments" : "without a peak") +
                ": pass the trace, or the profile that write_json wrote";
      return;
    }
    summary.overall_peak = *peak;
    read_space(summary, open.peak);
    read_categories(summary, open.owners);
    read_capacity(summary, open.fit);
    std::int64_t greatest = summary.overall_peak;
    for (const segment_usage& segment : summary.segments)
      greatest = std::max({greatest, segment.segment_peak, segment.segment_change});
    summary.resolution = std::max<std::int64_t>(1, greatest / 100);
    summary.remarks.push_back("the text has three digits of most bytes and the first of the segments of each name (" +
                              std::to_string(summary.segments.size()) + " of " + std::to_string(open.segments + open.left_out) +
                              "): pass the trace, or the profile that write_json wrote, for all of them");
    done_.push_back(std::move(summary));
  }

  /// "17.7 MiB (18,513,664 B) of cpu at 174 ms in BACKWARD_PASS of step 1 of 20, operation forward".
  static void read_space(memory_summary& summary, std::string_view peak) {
    constexpr std::string_view before_space = " of ";
    constexpr std::string_view before_time = " at ";
    constexpr std::string_view before_segment = " in ";
    const std::size_t begin = peak.find(before_space);
    if (begin == std::string_view::npos) return;
    const std::string_view rest = peak.substr(begin + before_space.size());
    const std::size_t time = rest.find(before_time);
    summary.space = rest.substr(0, time);
    const std::size_t place = time == std::string_view::npos ? time : rest.find(before_segment, time);
    if (place == std::string_view::npos) return;
    const std::string_view segment = rest.substr(place + before_segment.size());
    for (std::size_t index = 0; index < summary.segments.size(); ++index) {
      const std::string& name = summary.segments[index].segment;
      const std::string_view after = segment.starts_with(name) ? segment.substr(name.size()) : std::string_view{"?"};
      if (after.empty() || after.starts_with(" of step ") || after.starts_with(", ")) summary.peak_segment = index;
    }
  }

  /// The largest category takes what rounding left over, so that their sum is the peak.
  static void read_categories(memory_summary& summary, std::string_view owners) {
    std::vector<owned_bytes> categories = categories_of(owners);
    if (categories.empty()) return;
    std::int64_t sum = 0;
    for (const owned_bytes& row : categories) sum = add_saturating(sum, row.bytes);
    const std::int64_t rest = subtract_saturating(summary.overall_peak, sum);
    const auto largest =
        std::max_element(categories.begin(), categories.end(),
                         [](const owned_bytes& left, const owned_bytes& right) { return left.bytes < right.bytes; });
    if (rest > summary.overall_peak / 50 || rest < -summary.overall_peak / 50) {
      categories.push_back({std::string{to_string(category::other)}, rest, 0});  // cut off: the text was narrow
    } else {
      largest->bytes = add_saturating(largest->bytes, rest);
    }
    live_set& live = summary.live_at_peak.emplace();
    live.bytes = summary.overall_peak;
    live.by_category = std::move(categories);
  }

  /// "fits gpu-16gb: 5.12 GiB of 16.0 GiB free at the peak", or "...; 512 MiB free of 16.0 GiB, 700 MiB short".
  static void read_capacity(memory_summary& summary, std::string_view fit) {
    const bool fits = fit.starts_with("fits ");
    if ((!fits && !fit.starts_with("does not fit ")) || fit.find(" core") != std::string_view::npos) return;
    const std::string_view before = fits ? " of " : " free of ";
    const std::size_t at = fits ? fit.find(before, fit.find(": ")) : fit.rfind(before);
    if (at == std::string_view::npos) return;
    const std::string_view size = fit.substr(at + before.size());
    const std::size_t unit = size.find_first_of(" ", size.find(' ') + 1);
    summary.capacity = short_bytes_of(trimmed(size.substr(0, std::min(unit, size.find(',')))));
    const std::size_t name = fits ? 5 : 13;
    const std::size_t end = fit.find(": ");
    if (end != std::string_view::npos && fit.substr(name, end - name) != "the device")
      summary.device = fit.substr(name, end - name);
  }

  std::string source_;
  std::map<std::string, state, std::less<>> open_;  ///< by the label of their lines
  std::vector<memory_summary> done_;
  std::string last_text_;
  std::optional<std::int64_t> parameters_;
  std::string reason_;
};

}  // namespace memprof::detail
