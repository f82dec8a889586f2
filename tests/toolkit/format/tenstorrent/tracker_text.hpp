#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

/// @file
/// Logs of the tracker, written by hand for tests.

namespace memprof_tests {

/// Bytes of so many hundredths of a MB, to the nearest byte: what a log with two decimals can tell.
constexpr std::int64_t hundredths(std::int64_t count) {
  const std::int64_t scaled = count * (1 << 20);
  return (scaled + (scaled < 0 ? -50 : 50)) / 100;
}

/// The lines of one segment. All numbers are text, so that tests may write any.
inline std::string segment_text(const std::string& name, const std::string& peak, const std::string& allocations,
                                const std::string& deallocations, const std::string& change, const std::string& cumulative_peak,
                                const std::string& cumulative_current) {
  return "--- " + name + " ---\n  DRAM: Segment Peak " + peak + " MB, Allocations " + allocations + " MB, Deallocations " +
         deallocations + " MB, Segment Change " + change + " MB\n  DRAM: Cumulative Peak " + cumulative_peak +
         " MB, Cumulative Current " + cumulative_current +
         " MB\n  L1: Peak CB 0.29 MB, Peak Buffer 0.00 MB, Peak Total 0.29 MB\n";
}

/// The same with deallocations of 20,000 MB, and as many allocations as that and the change make.
inline std::string segment_text(const std::string& name, const std::string& peak, const std::string& change,
                                const std::string& cumulative_peak, const std::string& cumulative_current) {
  constexpr std::size_t longest = 40;
  char allocations[longest];
  std::snprintf(allocations, longest, "%.2f", 20'000 + std::stod(change));
  return segment_text(name, peak, allocations, "20000.00", change, cumulative_peak, cumulative_current);
}

inline const std::string header_text = "=== Memory Usage Summary ===\n\n";

inline std::string totals_text(const std::string& peak, const std::string& current) {
  return "\n=== Final Totals ===\nOverall DRAM Peak: " + peak + " MB, Final DRAM Usage: " + current + " MB\n\n";
}

/// The memory-efficient TinyLlama of the tracker's document.
inline std::string memory_efficient_text() {
  return header_text + segment_text("MODEL_CREATION", "1863.25", "+1863.25", "1863.25", "1863.25") +
         segment_text("OPTIMIZER_CREATION", "3708.76", "+3708.76", "5572.01", "5572.01") +
         segment_text("FORWARD_PASS", "996.35", "+192.95", "6568.36", "5764.96") +
         segment_text("BACKWARD_PASS", "2513.69", "+1663.07", "8278.65", "7428.04") + totals_text("8278.65", "7428.04");
}

/// The default one; the document tells neither its model nor its optimizer, but what was live before its forward pass:
/// 15207.89 - 9636.02 = 5571.87.
inline std::string default_text() {
  return header_text + segment_text("MODEL_CREATION", "1863.25", "+1863.25", "1863.25", "1863.25") +
         segment_text("OPTIMIZER_CREATION", "3708.62", "+3708.62", "5571.87", "5571.87") +
         segment_text("FORWARD_PASS", "10019.39", "+9636.02", "15591.27", "15207.89") +
         segment_text("BACKWARD_PASS", "458.75", "-7780.87", "15666.65", "7427.02") + totals_text("15666.65", "7427.02");
}

/// The text with `prefix` before each line and `ending` in place of each line feed.
inline std::string with_lines(std::string_view text, std::string_view prefix, std::string_view ending) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result += std::string{prefix} + std::string{text.substr(0, end)} + std::string{ending};
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return result;
}

}  // namespace memprof_tests
