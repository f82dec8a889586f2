#pragma once

#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The result for one way of training.
struct fit_row {
  std::string name;  ///< "all kept", "blocks recomputed"
  fit_answer answer;
};

/// A step of a given size, and whether it fits on the device.
struct asked_step {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
  bool fits = false;             ///< with all activations kept
  bool fits_recomputed = false;  ///< with recomputed blocks
};

/// The answer in a sentence: "Yes, with blocks recomputed: a step of B=1, T=4096 fits on gpu-80gb; with all activations kept it
/// does not."
[[nodiscard]] inline std::string fit_sentence(const asked_step& asked, std::string_view device) {
  const std::string step = "a step of B=" + std::to_string(asked.batch_size) + ", T=" + std::to_string(asked.seq_len);
  const std::string where = " on " + detail::on_one_line(device);
  if (asked.fits) return "Yes: " + step + " fits" + where + " with all activations kept.";
  if (asked.fits_recomputed)
    return "Yes, with blocks recomputed: " + step + " fits" + where + "; with all activations kept it does not.";
  return "No: " + step + " does not fit" + where + ", even with blocks recomputed.";
}

/// A table of the greatest sizes that fit; `size_name` says what is counted. GiB is 2^30 bytes.
[[nodiscard]] inline std::string to_text(const std::vector<fit_row>& rows, std::string_view size_name) {
  std::vector<std::vector<std::string>> cells{
      {"Activations", std::string{size_name}, "Peak GiB", "Reserved GiB", "One more: peak", "Reserved"}};
  const std::string nothing = detail::right_aligned("-", 7);
  const auto peak = [&](const step_need* need) { return need == nullptr ? nothing : detail::gibibytes(need->peak); };
  const auto reserved = [&](const step_need* need) {
    return need == nullptr || !need->reserved ? nothing : detail::gibibytes(*need->reserved);
  };
  for (const fit_row& row : rows) {
    const bool fits = row.answer.size > 0;
    const step_need* const at = fits ? &row.answer.need : nullptr;
    const step_need* const above = !fits ? &row.answer.need : row.answer.one_more ? &*row.answer.one_more : nullptr;
    cells.push_back(
        {row.name, fits ? std::to_string(row.answer.size) : "none", peak(at), reserved(at), peak(above), reserved(above)});
  }
  return detail::aligned_table(cells);
}

}  // namespace memprof::inline MEMPROF_ABI
