#include <memprof/config.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::string parts_text(const memory_prediction& prediction) {
  const bool in_gib = prediction.total() >= std::int64_t{1} << 30;
  const double unit = in_gib ? 0x1p30 : 0x1p20;
  std::string text;
  for (const memory_part& part : prediction.parts) {
    if (part.bytes == 0) continue;
    const double value = static_cast<double>(part.bytes) / unit;
    const bool is_little = value > 0 && value < 0.01;
    text += (text.empty() ? "" : ", ") + part.name + ' ' + (is_little ? "< 0.01" : detail::three_digits(value));
  }
  return text.empty() ? text : text + (in_gib ? " GiB" : " MiB");
}

std::vector<std::string> sources_text(const memory_prediction& prediction) {
  std::vector<std::string> lines;
  for (const memory_part& part : prediction.parts) {
    if (part.is_of_allocator) continue;
    if (!part.is_known()) {
      lines.push_back(part.name + ": not known for this device, and not counted");
      continue;
    }
    if (part.source.empty()) continue;
    std::string line = part.name + ' ';
    if (part.least != part.most) line += detail::short_bytes(part.least) + " to ";
    lines.push_back(line + detail::short_bytes(part.most) + ": " + part.source);
  }
  return lines;
}

}  // namespace memprof::inline MEMPROF_ABI
