// Replays the operations of tt-train's TinyLlama and compares what its memory tracker would print with the table in the tracker's
// documentation. Exits with 1 if the replay differs by more than can be explained.
#include <tinyllama_table/replay.hpp>

#include <memprof/profile/profile.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

using memprof::segment_usage;

/// A row of the published table, in hundredths of a MB (2^20 bytes).
struct published_row {
  std::string_view segment;
  std::string_view name;
  std::int64_t segment_usage::*number;
  std::int64_t hundredths;
};

constexpr std::array<published_row, 7> kept_rows{{
    {"FORWARD_PASS", "Segment Peak", &segment_usage::segment_peak, 1001939},
    {"FORWARD_PASS", "Segment Change", &segment_usage::segment_change, 963602},
    {"FORWARD_PASS", "Cumulative Peak", &segment_usage::cumulative_peak, 1559127},
    {"FORWARD_PASS", "Cumulative Current", &segment_usage::cumulative_current, 1520789},
    {"BACKWARD_PASS", "Segment Peak", &segment_usage::segment_peak, 45875},
    {"BACKWARD_PASS", "Segment Change", &segment_usage::segment_change, -778087},
    {"BACKWARD_PASS", "Cumulative Peak", &segment_usage::cumulative_peak, 1566665},
}};

constexpr std::array<published_row, 7> recomputed_rows{{
    {"MODEL_CREATION", "Segment Change", &segment_usage::segment_change, 186325},
    {"OPTIMIZER_CREATION", "Segment Change", &segment_usage::segment_change, 370876},
    {"FORWARD_PASS", "Segment Peak", &segment_usage::segment_peak, 99635},
    {"FORWARD_PASS", "Segment Change", &segment_usage::segment_change, 19295},
    {"BACKWARD_PASS", "Segment Peak", &segment_usage::segment_peak, 251369},
    {"BACKWARD_PASS", "Segment Change", &segment_usage::segment_change, 166307},
    {"BACKWARD_PASS", "Cumulative Peak", &segment_usage::cumulative_peak, 827865},
}};

const segment_usage* find_segment(const memprof::space_profile& space, std::string_view name) {
  for (const segment_usage& segment : space.segments) {
    if (std::string_view{segment.segment} == name) return &segment;
  }
  return nullptr;
}

/// Prints the rows beside the replay's numbers. Returns whether each published number is 0 to `explained` hundredths larger.
template <class Rows>
bool compare(std::string_view title, const Rows& rows, tinyllama_table::activations mode, std::int64_t explained) {
  const memprof::profile profile = tinyllama_table::replay_training_step(mode);
  bool is_explained = true;
  std::printf("%-38.*s %10s %10s %6s\n", static_cast<int>(title.size()), title.data(), "published", "replay", "rest");
  for (const published_row& row : rows) {
    const segment_usage* const segment = find_segment(profile.space("dram"), row.segment);
    if (segment == nullptr) return false;
    const std::int64_t replayed = std::llround(static_cast<double>(segment->*row.number) / 0x1p20 * 100);
    const std::int64_t rest = row.hundredths - replayed;
    is_explained = is_explained && rest >= 0 && rest <= explained;
    std::printf("%-18.*s %-19.*s %10.2f %10.2f %6.2f\n", static_cast<int>(row.segment.size()), row.segment.data(),
                static_cast<int>(row.name.size()), row.name.data(), static_cast<double>(row.hundredths) / 100,
                static_cast<double>(replayed) / 100, static_cast<double>(rest) / 100);
  }
  std::puts("");
  return is_explained;
}

}  // namespace

int main() {
  using tinyllama_table::activations;
  const bool kept = compare("Default (MB)", kept_rows, activations::kept, 0);
  const bool recomputed = compare("Memory-efficient (MB)", recomputed_rows, activations::recomputed, 100);
  if (kept && recomputed) return 0;
  std::puts("The replay differs by more than can be explained.");
  return 1;
}
