#include <memprof/config.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

struct tracker_anchor {
  std::string_view words;
  tracker_line_kind kind;
};

/// In the order of the search; any prefix may precede the words.
constexpr std::array<tracker_anchor, 10> tracker_anchors{{
    {summary_header, tracker_line_kind::header},
    {"DRAM: Segment Peak", tracker_line_kind::usage},
    {"DRAM: Cumulative Peak", tracker_line_kind::cumulative},
    {"Overall DRAM Peak:", tracker_line_kind::totals},
    {"L1: Peak CB", tracker_line_kind::l1},
    {"=== Final Totals ===", tracker_line_kind::totals_title},
    {"Number of parameters:", tracker_line_kind::parameters},
    {"Total parameters:", tracker_line_kind::parameters},
    {"WARNING: Trace '", tracker_line_kind::overwritten},
    {"WARNING: Snapshot '", tracker_line_kind::overwritten},
}};

}  // namespace

tracker_line classify(std::string_view text) {
  for (const tracker_anchor& anchor : tracker_anchors) {
    const std::size_t begin = text.find(anchor.words);
    if (begin == std::string_view::npos) continue;
    if (anchor.kind == tracker_line_kind::overwritten && text.find("already exists", begin) == std::string_view::npos) continue;
    return {anchor.kind, text.substr(0, begin), trimmed(text.substr(begin))};
  }
  constexpr std::string_view opening = "--- ";
  constexpr std::string_view closing = " ---";
  const std::string_view line = trimmed(text);
  const std::size_t begin = line.find(opening);
  if (begin != std::string_view::npos && line.size() >= begin + opening.size() + closing.size() && line.ends_with(closing)) {
    const std::string_view inner = line.substr(begin + opening.size());
    const std::string_view name = trimmed(inner.substr(0, inner.size() - closing.size()));
    if (!name.empty()) return {tracker_line_kind::segment, line.substr(0, begin), name};
  }
  return {tracker_line_kind::text, text.substr(0, 0), line};
}

std::string_view other_space_in(std::string_view text) {
  const std::size_t end = text.find(": Segment Peak ");
  if (end == std::string_view::npos || text.find(" MB, Allocations ", end) == std::string_view::npos) return {};
  const std::size_t indent = text.rfind("  ", end);  // after the indent, so that launchers' labels are not part of the name
  return trimmed(
      text.substr(indent == std::string_view::npos ? 0 : indent, end - (indent == std::string_view::npos ? 0 : indent)));
}

namespace {

/// Whether a line shows the progress of a training, such as "step 12/200  loss 3.21", "Loss: unknown", "epoch 2" or a progress
/// bar.
bool shows_progress(std::string_view content) {
  std::string lower{content};
  for (char& character : lower) {
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character | 0x20);
  }
  const auto has_number_after = [&](std::string_view word) {
    for (std::size_t found = lower.find(word); found != std::string::npos; found = lower.find(word, found + 1)) {
      if (found > 0 && is_letter(lower[found - 1])) continue;
      std::size_t next = found + word.size();
      while (next < lower.size() && std::string_view{" \t:=#"}.find(lower[next]) != std::string_view::npos) ++next;
      const bool is_separate = next > found + word.size();
      if (is_separate && next < lower.size() && (is_digit(lower[next]) || lower.compare(next, 7, "unknown") == 0)) return true;
    }
    return false;
  };
  for (const std::string_view word : {"loss", "step", "iter", "iteration", "epoch", "batch"}) {
    if (has_number_after(word)) return true;
  }
  return lower.find("it/s") != std::string::npos || lower.find("s/it") != std::string::npos;
}

}  // namespace

bool names_a_section(std::string_view content) {
  return !content.empty() && !content.starts_with('#') && !shows_progress(content);
}

std::int64_t rank_number(std::string_view digits) {
  std::int64_t number = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return fault == std::errc{} && end == digits.data() + digits.size() ? number : -1;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
