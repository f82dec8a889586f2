#include <memprof/config.hpp>
#include <memprof/profile/fact/predicted_memory.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

bool is_uncertain(const predicted_memory& part) noexcept {
  return part.least_bytes != part.bytes || part.most_bytes != part.bytes;
}

/// Names of the parts that may take more, or less, than expected.
std::string names_of_uncertain(const memory_prediction& prediction, bool more) {
  std::string names;
  for (const predicted_memory& part : prediction.parts) {
    const bool differs = more ? part.most_bytes > part.bytes : part.least_bytes < part.bytes;
    if (differs) names += (names.empty() ? "" : " and ") + part.part;
  }
  return names;
}

}  // namespace
}  // namespace detail

std::string parts_text(const memory_prediction& prediction) {
  const bool in_gib = prediction.bytes() >= std::int64_t{1} << 30;
  const double unit = in_gib ? 0x1p30 : 0x1p20;
  std::string text;
  for (const predicted_memory& part : prediction.parts) {
    if (part.bytes == 0) continue;
    const double value = static_cast<double>(part.bytes) / unit;
    text += (text.empty() ? "" : ", ") + part.part + ' ' + (value < 0.01 ? "< 0.01" : detail::three_digits(value));
  }
  return text.empty() ? text : text + (in_gib ? " GiB" : " MiB");
}

std::vector<std::string> uncertain_parts_text(const memory_prediction& prediction) {
  std::vector<std::string> lines;
  for (const predicted_memory& part : prediction.parts) {
    if (!detail::is_uncertain(part)) continue;
    std::string line = part.part + ": ";
    if (part.most_bytes == predicted_memory::unknown) {
      line += detail::short_bytes(part.least_bytes) + " or more";
    } else if (part.least_bytes == 0) {
      line += "up to " + detail::short_bytes(part.most_bytes);
    } else {
      line += detail::short_bytes(part.least_bytes) + " to " + detail::short_bytes(part.most_bytes);
    }
    lines.push_back(part.source.empty() ? line : line + " (" + part.source + ")");
  }
  return lines;
}

std::string uncertainty_text(const memory_prediction& prediction, fit_certainty certainty, std::int64_t spare) {
  switch (certainty) {
    case fit_certainty::probably_fits:
      return detail::short_bytes(spare) + " to spare, but " + detail::names_of_uncertain(prediction, true) + " may take " +
             detail::short_bytes(prediction.most() - prediction.bytes()) + " more";
    case fit_certainty::probably_fails:
      return detail::names_of_uncertain(prediction, false) + " may take " +
             detail::short_bytes(prediction.bytes() - prediction.least()) + " less, and then it fits";
    case fit_certainty::fits:
    case fit_certainty::does_not_fit: break;
  }
  return {};
}

}  // namespace memprof::inline MEMPROF_ABI
