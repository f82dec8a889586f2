#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/text_options.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// What each answer of a summary is about, and how all of them state when, where and by whom something happened.

namespace memprof::inline MEMPROF_ABI::detail {

/// How much of each answer is shown.
struct summary_limits {
  std::size_t owners;
  std::size_t owners_at_end;
  std::size_t anomalies;
  std::size_t spaces;
  std::size_t growing_spaces;
  std::size_t lines_each;         ///< of a paragraph
  std::size_t lines_of_verdicts;  ///< of a paragraph of those
  std::size_t segment_rows;       ///< for which there must be room

  [[nodiscard]] bool are_tight() const noexcept { return lines_each == 1; }
};

/// What an answer is about.
struct answer_topic {
  const profile& source;
  const segment_steps& steps;
  const vector<std::size_t>& space_order;  ///< the numbers of all spaces, most relevant first
  const text_options& options;
  summary_limits limits;
  const space_profile* space = nullptr;  ///< that the answer is about, if it is about one
};

/// " in BACKWARD_PASS, step 2 of 200"; nothing if the index refers to no segment.
[[gnu::cold]] inline void add_segment(marked_text& line, const answer_topic& topic, std::int64_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= topic.source.segments.size()) return;
  const auto at = static_cast<std::size_t>(index);
  line.add(" in ").add_name(topic.source.segments[at].name);
  if (topic.steps.count > 1 && topic.steps.of_segment[at] >= 0)
    line.add(", step ").add_count(topic.steps.of_segment[at] + 1).add(" of ").add_count(topic.steps.count);
}

/// " at 52.1 ms in BACKWARD_PASS, step 2 of 200, operation forward/block"; no operation if the program names none.
[[gnu::cold]] inline void add_place(marked_text& line, const answer_topic& topic, std::int64_t time_ns, std::int64_t segment,
                                    std::string_view operation) {
  line.add(" at ").add_time(time_ns);
  add_segment(line, topic, segment);
  if (!operation.empty()) {
    line.add(", operation ").add_name(operation);
  } else if (!topic.source.operations.empty()) {
    line.add(", outside every operation");
  }
}

[[gnu::cold]] inline marked_text& add_owner(marked_text& line, std::string_view path) {
  return path.empty() ? line.add("outside every operation") : line.add_name(path);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
