#include "table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace bench {
namespace {

using cells = std::array<std::string, 8>;

/// Formats a number with three significant digits.
std::string number(double value) {
  std::array<char, 32> text{};
  const double size = std::fabs(value);
  const int digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string column(const std::optional<double>& value) { return value ? number(*value) : "-"; }

std::string in_words(const goal& goal) {
  const char* const sign = goal.wanted == goal::sense::at_most ? "<= " : goal.wanted == goal::sense::at_least ? ">= " : "> ";
  return sign + number(goal.value);
}

std::string noise(const samples& values) {
  return values.size() < 2 ? "-" : number(least(values)) + " .. " + number(greatest(values));
}

std::string verdict_on(const result& result, double value) {
  if (result.took_turns) return "threads ran only " + number(*result.threads_ran * 100) + " % of the time: do not publish";
  if (!result.goal) return "";
  return result.goal->is_met(value) ? "met" : "MISSED";
}

cells row_of(const result& result) {
  const double value = median(result.measured);
  return {result.name,
          column(result.untracked),
          column(result.compiled_out),
          column(result.on),
          number(value) + " " + result.unit,
          noise(result.measured),
          result.goal ? in_words(*result.goal) : "",
          verdict_on(result, value)};
}

std::string line_of(const cells& row, const std::array<std::size_t, 8>& widths) {
  std::string line;
  for (std::size_t index = 0; index < row.size(); ++index) {
    const std::string padding(widths[index] - row[index].size(), ' ');
    const bool is_text = index == 0 || index == row.size() - 1;
    line += is_text ? row[index] + padding + "  " : padding + row[index] + "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string to_table(const report& report) {
  std::vector<cells> rows{{"benchmark", "untracked", "compiled out", "on", "measured", "min .. max", "goal", ""}};
  for (const result& result : report.results) rows.push_back(row_of(result));
  std::array<std::size_t, 8> widths{};
  for (const cells& row : rows) {
    for (std::size_t index = 0; index < row.size(); ++index) widths[index] = std::max(widths[index], row[index].size());
  }

  std::string text;
  for (const cells& row : rows) {
    text += line_of(row, widths);
    if (&row == &rows.front()) text += std::string(text.size() - 1, '-') + "\n";
  }
  for (const std::string& reason : report.skipped) text += "skipped: " + reason + "\n";
  return text;
}

}  // namespace bench
