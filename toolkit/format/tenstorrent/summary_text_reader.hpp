#pragma once

#include <memprof/profile/profile.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Finds the summaries of `to_text` in a log, line by line, with colours already taken out.
///
/// Peak and final usage are exact. Everything else is what such a text still has: bytes to three digits, the categories at the
/// peak, and for the segments of each name the first, last, least, greatest and mean; the first one becomes a segment. A remark
/// says so, and what to read for exact numbers. Lines may follow a label that is the same for a whole summary, such as a rank
/// added by a launcher.
class summary_text_reader {
 public:
  explicit summary_text_reader(std::string_view source) : source_{source} {}

  void read(std::string_view line, std::size_t number);

  /// The summaries in the order in which they end.
  [[nodiscard]] std::vector<profile> finish();

  /// Why a text that began like a summary is not one; empty if there was no such text.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  enum class part { other, peak, owners, fit, segments };

  struct state {
    profile summary;
    part where = part::other;
    std::string peak;
    std::string owners;
    std::string fit;
    bool has_owner_rows = false;  ///< the table has started
    bool has_peak = false;
    bool has_end = false;
    bool awaits_change = false;  ///< of the last name, expected in the next row
    std::int64_t left_out = 0;   ///< segments without a row of their own
  };

  /// Whether the heading is at the start of the line, or follows a label that ends with a space or a bracket.
  [[nodiscard]] static bool begins_summary(std::string_view line) noexcept;

  void open(std::string_view line, std::size_t number);

  /// The summary that the line continues: the one with the longest matching label.
  [[nodiscard]] std::map<std::string, state, std::less<>>::iterator state_of(std::string_view line);

  /// Keeps a possible title of a summary, or the number of parameters of its model.
  void keep_text(std::string_view line);

  /// Whether the line belongs to the summary.
  bool read_line(state& open, std::string_view line);

  static bool begin_part(state& open, std::string_view name, std::string_view text);

  static void continue_part(state& open, std::string_view text);

  static bool read_segment(state& open, std::string_view line);

  /// Adds the first segment of the last name, whose changes are `change`, after those already there.
  static void add_segment(profile& summary, const value_summary& change);

  void close(state& open);

  std::string source_;
  std::map<std::string, state, std::less<>> open_;  ///< keyed by the label of their lines
  std::vector<profile> done_;
  std::string last_text_;
  std::optional<std::int64_t> parameters_;
  std::string reason_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
