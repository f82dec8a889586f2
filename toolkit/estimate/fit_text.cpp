#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/fit_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::string fit_sentence(const asked_step& asked, std::string_view device) {
  const std::string step = "a step of B=" + std::to_string(asked.batch_size) + ", T=" + std::to_string(asked.seq_len);
  const std::string where = " on " + detail::on_one_line(device);
  if (asked.fits) return "Yes: " + step + " fits" + where + " with all activations kept.";
  if (asked.fits_recomputed)
    return "Yes, with blocks recomputed: " + step + " fits" + where + "; with all activations kept it does not.";
  return "No: " + step + " does not fit" + where + ", even with blocks recomputed.";
}

std::string to_text(const std::vector<fit_row>& rows, std::string_view size_name, std::size_t columns) {
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
  constexpr std::size_t all_columns = 90;
  if (columns != 0 && columns < all_columns) {
    cells.front()[3] = "Reserved";
    cells.front()[4] = "One more";
  }
  if (columns != 0 && columns < 80) {
    cells.front()[1] = size_name.substr(0, size_name.find(' '));
    for (auto& row : cells) row.pop_back();
  }
  return detail::aligned_table(std::move(cells), columns);
}

}  // namespace memprof::inline MEMPROF_ABI
