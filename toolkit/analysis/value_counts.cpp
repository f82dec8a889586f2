#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/value_counts.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

void value_counts::add(std::int64_t value, std::uint64_t key) {
  add_row(value, {1, {value, key}});
  ++count_;
  while (rows_.size() > most) coarsen();
}

void value_counts::add_row(std::int64_t value, const row& added) {
  const auto [found, is_new] = rows_.try_emplace(value >> shift_ << shift_, added);
  if (is_new) return;
  row& known = found->second;
  known.count += added.count;
  if (added.first.key < known.first.key) known.first = added.first;
}

void value_counts::coarsen() {
  ++shift_;
  const std::map<std::int64_t, row> finer = std::exchange(rows_, {});
  for (const auto& [value, of] : finer) add_row(value, of);
}

value_counts::representative value_counts::median() const {
  std::int64_t before = 0;
  for (const auto& [value, of] : rows_) {
    before += of.count;
    if (2 * before >= count_) return of.first;
  }
  return {};
}

std::int64_t value_counts::median_distance(std::int64_t from) const {
  std::map<std::int64_t, std::int64_t> distances;
  for (const auto& [value, of] : rows_) distances[std::abs(of.first.value - from)] += of.count;
  std::int64_t before = 0;
  for (const auto& [distance, times] : distances) {
    before += times;
    if (2 * before > count_) return distance;
  }
  return 0;
}

std::int64_t value_counts::count_beyond(std::int64_t from, std::int64_t distance) const {
  std::int64_t beyond = 0;
  for (const auto& [value, of] : rows_) {
    if (std::abs(of.first.value - from) > distance) beyond += of.count;
  }
  return beyond;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
