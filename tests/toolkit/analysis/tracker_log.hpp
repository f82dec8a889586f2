#pragma once

#include <algorithm>
#include <cstddef>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

/// @file
/// What two public parsers of tt-train's logs see in a text: their regular expressions, in the dialect of std::regex (which has
/// no flag for '.' to match newlines).

namespace memprof_tests {

/// The numbers of one phase, in MB.
struct tracker_phase {
  std::string name;
  double segment_peak = 0;
  double allocations = 0;
  double deallocations = 0;
  double segment_change = 0;
  double cumulative_peak = 0;
  double cumulative_current = 0;
};

struct tracker_log {
  std::vector<tracker_phase> phases;
  double overall_peak = -1;
  double final_usage = -1;
};

/// `parse_memory_value` of analyze_memory.py: 0.0 if there is no number.
inline double tracker_value(const std::string& text) {
  static const std::regex size{R"(([+-]?\d+\.?\d*)\s*MB)"};
  std::smatch match;
  return std::regex_search(text, match, size) ? std::stod(match[1]) : 0.0;
}

/// The summaries that analyze_memory.py finds in a log.
inline std::vector<std::string> tracker_summaries(const std::string& log) {
  static const std::regex summary{R"(=== Memory Usage Summary ===[\s\S]*?Overall DRAM Peak[^\n]*)"};
  std::vector<std::string> found;
  for (std::sregex_iterator match{log.begin(), log.end(), summary}; match != std::sregex_iterator{}; ++match) {
    found.push_back(match->str());
  }
  return found;
}

/// What analyze_memory.py reads of one phase in a summary.
inline tracker_phase analyzed_phase(const std::string& summary, const std::string& name) {
  const std::regex phase{"--- " + name +
                         R"( ---\s*\n\s*DRAM: Segment Peak ([^,]+), Allocations ([^,]+), Deallocations ([^,]+), )" +
                         R"(Segment Change ([^\n]+)\s*\n\s*DRAM: Cumulative Peak ([^,]+), Cumulative Current ([^\n]+))"};
  std::smatch match;
  if (!std::regex_search(summary, match, phase)) throw std::runtime_error("no phase " + name);
  return {name,
          tracker_value(match[1]),
          tracker_value(match[2]),
          tracker_value(match[3]),
          tracker_value(match[4]),
          tracker_value(match[5]),
          tracker_value(match[6])};
}

/// What analyze_memory.py reads as the overall peak of a summary.
inline double analyzed_peak(const std::string& summary) {
  static const std::regex peak{R"(Overall DRAM Peak:\s*([^\n,]+))"};
  std::smatch match;
  return std::regex_search(summary, match, peak) ? tracker_value(match[1]) : -1;
}

/// What extract_results.py, which goes line by line, reads in a log.
inline tracker_log extracted_log(const std::string& log) {
  static const std::regex segment{R"(^--- (\w+) ---$)"};
  static const std::regex usage{
      R"(DRAM: Segment Peak ([\d.]+) MB, Allocations ([\d.]+) MB, Deallocations ([\d.]+) MB, Segment Change ([+\-\d.]+) MB)"};
  static const std::regex cumulative{R"(DRAM: Cumulative Peak ([\d.]+) MB, Cumulative Current ([\d.]+) MB)"};
  static const std::regex totals{R"(Overall DRAM Peak: ([\d.]+) MB, Final DRAM Usage: ([\d.]+) MB)"};
  tracker_log result;
  std::smatch match;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (std::regex_search(line, match, segment)) result.phases.push_back({match[1]});
    if (result.phases.empty()) continue;
    tracker_phase& phase = result.phases.back();
    if (std::regex_search(line, match, usage)) {
      phase.segment_peak = std::stod(match[1]);
      phase.allocations = std::stod(match[2]);
      phase.deallocations = std::stod(match[3]);
      phase.segment_change = std::stod(match[4]);
    } else if (std::regex_search(line, match, cumulative)) {
      phase.cumulative_peak = std::stod(match[1]);
      phase.cumulative_current = std::stod(match[2]);
    } else if (std::regex_search(line, match, totals)) {
      result.overall_peak = std::stod(match[1]);
      result.final_usage = std::stod(match[2]);
    }
  }
  return result;
}

/// The section title that analyze_memory.py gives the summary after `before`: the last line that says something.
inline std::string analyzed_section(const std::string& before) {
  static const std::regex line{R"([^\n]+)"};
  std::string title = "Unknown";
  for (std::sregex_iterator match{before.begin(), before.end(), line}; match != std::sregex_iterator{}; ++match) {
    const std::string text = match->str();
    if (text.front() != '#' && text.find("Number of parameters") == std::string::npos) title = text;
  }
  return title;
}

}  // namespace memprof_tests
