#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/model_parameters.hpp>
#include <memprof/toolkit/format/tenstorrent/summary_text_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_totals.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Reads the fields `labels`, in that order, into `values`. Returns the label of the first one without a number; empty if all are
/// there.
template <std::size_t Count>
[[nodiscard]] std::string_view read_megabytes(std::string_view content, const std::array<std::string_view, Count>& labels,
                                              const std::array<std::int64_t*, Count>& values) {
  std::size_t position = 0;
  for (std::size_t index = 0; index < Count; ++index) {
    const std::size_t found = content.find(labels[index], position);
    if (found == std::string_view::npos) return labels[index];
    position = found + labels[index].size();
    const std::optional<std::int64_t> bytes = megabytes_at(content.substr(position));
    if (!bytes) return labels[index];
    *values[index] = *bytes;
  }
  return {};
}

/// What a log lacks.
constexpr auto absent_from_tracker_log = std::to_array<std::string_view>(
    {"allocation_count", "deallocation_count", "begin_ns",     "end_ns",         "step",         "step_count", "segments_by_name",
     "duration_ns",      "begin_unix_ns",      "peak_time_ns", "peak_operation", "live_at_peak", "timeline",   "operations",
     "checkpoints",      "checkpoint_count",   "capacity",     "cores",          "anomalies",    "cost"});

/// Reads the lines of a log one by one; see `parse_tracker_log`. Ranks are tracked separately.
class tracker_reader {
 public:
  explicit tracker_reader(std::string_view source) : source_{source} {}

  /// The next line, without control characters.
  void read(std::string_view text, std::size_t number) {
    is_empty_ = false;
    const tracker_line line = classify(text);
    rank_state& rank = state_of(line, text);
    switch (line.kind) {
      case tracker_line_kind::text:
        if (const std::string_view other = other_space_in(text); !other.empty() && rank.summary) return pass_over(rank, other);
        if (names_a_section(line.content)) rank.last_text = line.content;
        return;
      case tracker_line_kind::parameters: return read_parameters(rank, line.content);
      case tracker_line_kind::header: return begin_summary(rank, number);
      case tracker_line_kind::segment: return begin_segment(rank, line.content, number);
      case tracker_line_kind::usage: return read_usage(rank, line.content, number);
      case tracker_line_kind::cumulative: return read_cumulative(rank, line.content, number);
      case tracker_line_kind::totals: return read_totals(rank, line.content, number);
      case tracker_line_kind::overwritten:
        rank.overwritten = "line " + std::to_string(number) + " warns: " + std::string{line.content};
        return;
      case tracker_line_kind::totals_title:
      case tracker_line_kind::l1: rank.last_text.clear(); return;
    }
  }

  /// The summaries, including those that the log has in another format. Raises an error if there are none; `reason_of_others` is
  /// why the other format has none, if known.
  [[nodiscard]] std::vector<profile> finish(std::vector<profile> others = {}, const std::string& reason_of_others = {}) && {
    for (auto& [name, rank] : ranks_) end_summary(rank);
    for (profile& other : others) done_.push_back(std::move(other));
    if (done_.empty()) {
      raise("cannot read a memory summary from '" + source_ + "': " + (reason_of_others.empty() ? reason() : reason_of_others));
    }
    std::sort(done_.begin(), done_.end(),
              [](const profile& left, const profile& right) { return left.provenance.line < right.provenance.line; });
    return std::move(done_);
  }

 private:
  /// The state of one rank's lines.
  struct rank_state {
    std::string rank;
    std::string last_text;
    std::string overwritten;
    std::optional<std::int64_t> parameters;
    bool parameters_are_old = false;  ///< an earlier summary already had them
    std::optional<profile> summary;
    segment_usage segment;         ///< the one being read
    std::size_t segment_line = 0;  ///< line of its "--- NAME ---"; 0 if none is being read
    bool has_usage = false;
  };

  /// The state of the rank that wrote the line. A line without a label continues where the last summary began: some loggers label
  /// only the first line of a message.
  rank_state& state_of(const tracker_line& line, std::string_view text) {
    constexpr std::size_t longest_prefix = 100;
    const std::string_view prefix = line.kind == tracker_line_kind::text ? text.substr(0, longest_prefix) : line.prefix;
    std::string_view name = bracketed_rank(prefix);
    if (name.empty() && line.kind != tracker_line_kind::text) name = spelled_rank(prefix);
    if (name.empty()) {
      const std::string_view label = labelled_rank(prefix);
      if (line.kind == tracker_line_kind::header && !label.empty()) lines_are_labelled_ = true;
      if (lines_are_labelled_) name = label;
    }
    auto found = ranks_.find(name);
    if (name.empty() && latest_ != nullptr && (found == ranks_.end() || !found->second.summary)) return *latest_;
    if (found == ranks_.end()) {
      found = ranks_.emplace(name, rank_state{}).first;
      found->second.rank = name;
    }
    return found->second;
  }

  void read_parameters(rank_state& rank, std::string_view content) {
    const std::optional<std::int64_t> count = count_at(content.substr(content.find(':') + 1));
    if (!count) return;
    rank.parameters = count;
    rank.parameters_are_old = false;
    parameters_ = count;
  }

  void begin_summary(rank_state& rank, std::size_t number) {
    end_summary(rank);
    open_summary(rank, number);
    // Every rank writes its summary, but perhaps only one writes the number of parameters.
    latest_ = &rank;
  }

  void open_summary(rank_state& rank, std::size_t number) {
    profile& summary = rank.summary.emplace();
    summary.exact = true;  // but for the rounding
    summary.provenance.format = tracker_format;
    summary.provenance.file = source_;
    summary.provenance.line = static_cast<std::int64_t>(number);
    summary.provenance.section = std::exchange(rank.last_text, {});
    summary.provenance.rounding = tracker_resolution;
    summary.provenance.absent.assign(absent_from_tracker_log.begin(), absent_from_tracker_log.end());
    summary.spaces.emplace_back().name = "dram";
    summary.process.rank = rank_number(rank.rank);
    const std::optional<std::int64_t> parameters = rank.parameters ? rank.parameters : parameters_;
    if (parameters) summary.facts.push_back(to_table<model_parameters>({{*parameters}}));
    vector<std::string>& remarks = summary.provenance.remarks;
    if (std::exchange(rank.parameters_are_old, true) && parameters) {
      remarks.emplace_back("the number of parameters is the one logged before an earlier summary");
    }
    if (!rank.overwritten.empty()) {
      remarks.push_back(std::exchange(rank.overwritten, {}) +
                        ": an earlier segment of that name is lost, so totals may be too small");
    }
  }

  void begin_segment(rank_state& rank, std::string_view name, std::size_t number) {
    end_segment(rank);
    rank.segment = {};
    rank.segment.segment = name;
    rank.segment_line = number;
    rank.has_usage = false;
  }

  void read_usage(rank_state& rank, std::string_view content, std::size_t number) {
    if (rank.segment_line == 0 || rank.has_usage) {
      return note(rank, number, std::string{content.substr(0, content.find(','))}, "has no line \"--- NAME ---\" before it");
    }
    segment_usage& segment = rank.segment;
    const std::string_view missing =
        read_megabytes<4>(content, {"Segment Peak", "Allocations", "Deallocations", "Segment Change"},
                          {&segment.segment_peak, &segment.allocations, &segment.deallocations, &segment.segment_change});
    if (!missing.empty())
      return drop_segment(rank, "line " + std::to_string(number) + " has no number of MB after \"" + std::string{missing} + '"');
    rank.has_usage = true;
    if (!rank.summary) {
      open_summary(rank, rank.segment_line);
      rank.summary->provenance.remarks.push_back("the line \"" + std::string{summary_header} +
                                                 "\" is missing: the summary may lack its first segments");
    }
  }

  void read_cumulative(rank_state& rank, std::string_view content, std::size_t number) {
    if (rank.segment_line == 0 || !rank.has_usage || !rank.summary) return;
    segment_usage& segment = rank.segment;
    const std::string_view missing = read_megabytes<2>(content, {"Cumulative Peak", "Cumulative Current"},
                                                       {&segment.cumulative_peak, &segment.cumulative_current});
    if (!missing.empty()) {
      rank.summary->provenance.remarks.push_back("line " + std::to_string(number) + " has no number of MB after \"" +
                                                 std::string{missing} + '"');
      return;  // end_segment computes them
    }
    space_of(*rank.summary).segments.push_back(std::move(segment));
    rank.segment_line = 0;
  }

  void read_totals(rank_state& rank, std::string_view content, std::size_t number) {
    end_segment(rank);
    std::int64_t peak = 0;
    std::int64_t current = 0;
    const bool has_peak = read_megabytes<1>(content, {"Overall DRAM Peak"}, {&peak}).empty();
    const bool has_current = read_megabytes<1>(content, {"Final DRAM Usage"}, {&current}).empty();
    const std::string shown{content.substr(0, content.find(','))};
    if (!rank.summary) return note(rank, number, shown, "has no summary before it");
    if (!has_peak) return note(rank, number, shown, "has no number of MB");
    state_totals(*rank.summary, peak, has_current ? std::optional{current} : std::nullopt);
    done_.push_back(*std::exchange(rank.summary, std::nullopt));
    rank.last_text.clear();
  }

  /// Ends a summary without totals.
  void end_summary(rank_state& rank) {
    end_segment(rank);
    if (!rank.summary) return;
    profile summary = *std::exchange(rank.summary, std::nullopt);
    if (space_of(summary).segments.empty()) {
      suspect(static_cast<std::size_t>(summary.provenance.line), summary_header,
              "no segment (\"--- NAME ---\" and \"DRAM: Segment Peak ... MB, ...\") follows it");
      return;
    }
    compute_totals(summary);
    done_.push_back(std::move(summary));
  }

  /// Keeps the segment being read if its main line was complete.
  void end_segment(rank_state& rank) {
    if (rank.segment_line == 0) return;
    if (!rank.has_usage || !rank.summary) {
      return drop_segment(rank, "no line \"DRAM: Segment Peak ... MB, Allocations ...\" follows it");
    }
    compute_cumulative(space_of(*rank.summary), rank.segment);
    rank.summary->provenance.remarks.push_back("segment " + rank.segment.segment + " in line " +
                                               std::to_string(rank.segment_line) +
                                               " lacks its cumulative values: computed from the segments before it");
    space_of(*rank.summary).segments.push_back(std::move(rank.segment));
    rank.segment_line = 0;
  }

  /// Adds a single remark that a log has lines of another memory space.
  static void pass_over(rank_state& rank, std::string_view space) {
    std::string remark = "the log has lines of another memory space, " + std::string{space} +
                         ", which are skipped: a profile or trace of the run has them too";
    vector<std::string>& remarks = rank.summary->provenance.remarks;
    if (std::find(remarks.begin(), remarks.end(), remark) == remarks.end()) remarks.push_back(std::move(remark));
  }

  void drop_segment(rank_state& rank, const std::string& missing) {
    note(rank, rank.segment_line, "--- " + rank.segment.segment + " ---", missing);
    rank.segment_line = 0;
  }

  /// A line that cannot be used: part of the open summary, or else a possible reason why there is none.
  void note(rank_state& rank, std::size_t number, const std::string& line, const std::string& missing) {
    suspect(number, line, missing);
    if (rank.summary) {
      rank.summary->provenance.remarks.push_back("line " + std::to_string(number) + ", \"" + line +
                                                 "\", is left out: " + missing);
    }
  }

  void suspect(std::size_t number, std::string_view line, std::string_view missing) {
    if (suspect_line_ != 0 && suspect_line_ <= number) return;
    suspect_line_ = number;
    constexpr std::size_t longest = 80;
    suspect_ = "line " + std::to_string(number) + ", \"" + std::string{line.substr(0, longest)} +
               "\", looks like part of one, but " + std::string{missing};
  }

  [[nodiscard]] std::string reason() const {
    if (suspect_line_ != 0) return suspect_;
    if (is_empty_) return "it is empty";
    return "no line looks like part of one: neither \"" + std::string{summary_header} + "\" nor \"--- NAME ---\" found";
  }

  std::string source_;
  std::map<std::string, rank_state, std::less<>> ranks_;
  rank_state* latest_ = nullptr;  ///< whose summary began last; elements of a map have stable addresses
  std::optional<std::int64_t> parameters_;
  bool lines_are_labelled_ = false;
  bool is_empty_ = true;
  std::vector<profile> done_;
  std::size_t suspect_line_ = 0;
  std::string suspect_;
};

/// Takes a log line by line.
class tracker_log_lines {
 public:
  explicit tracker_log_lines(std::string_view source) : reader_{source}, answers_{source} {}

  /// The next line, without its LF.
  void read(std::string_view line) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (++number_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    // A progress bar returns to the start of its line, and what follows may share that line.
    while (!line.empty()) {
      const std::size_t carriage_return = line.find('\r');
      const std::string visible = visible_text(line.substr(0, carriage_return));
      reader_.read(visible, number_);
      answers_.read(visible, number_);
      line = carriage_return == std::string_view::npos ? std::string_view{} : line.substr(carriage_return + 1);
    }
  }
  [[nodiscard]] std::vector<profile> finish() {
    std::vector<profile> answered = answers_.finish();
    return std::move(reader_).finish(std::move(answered), answers_.reason());
  }

 private:
  tracker_reader reader_;
  summary_text_reader answers_;
  std::size_t number_ = 0;
};

}  // namespace
}  // namespace detail

std::vector<profile> parse_tracker_log(std::string_view text, std::string_view source) {
  detail::tracker_log_lines lines{source};
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.read(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines.finish();
}

std::vector<profile> read_tracker_log(std::FILE* file, const std::filesystem::path& path) {
  detail::byte_reader in{file, path};
  detail::tracker_log_lines lines{path.string()};
  std::string line;
  for (std::uint64_t number = 1; detail::next_line(in, line, number); ++number) lines.read(line);
  return lines.finish();
}

}  // namespace memprof::inline MEMPROF_ABI
