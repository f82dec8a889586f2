#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/lifetimes.hpp>
#include <property/ledger_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// The lifetimes in one memory space, from their definitions: every block's life is kept, lifetimes are sorted, and what was live
/// of the blocks that came and went within a segment is added up at each of their allocations.
class lifetime_model {
 public:
  lifetime_model(const ledger_model& model, const model_names& names, const std::vector<ledger_model::life>& lives)
      : model_(model), names_(names), lives_(lives) {}

  /// In no order.
  [[nodiscard]] memprof::vector<lifetime_usage> rows() const {
    std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::size_t>> by_kind;
    for (std::size_t index = 0; index < lives_.size(); ++index) {
      std::int64_t least = lives_[index].bytes == 0 ? 0 : 1;
      while (least != 0 && least <= lives_[index].bytes / 2) least *= 2;
      by_kind[{lives_[index].operation, least}].push_back(index);
    }
    memprof::vector<lifetime_usage> result;
    for (const auto& [kind, members] : by_kind)
      result.push_back(row_of(model_.operation_path(names_, kind.first), kind.second, members));
    return result;
  }

  /// The blocks that came and went within these segments; the peak is the greatest of theirs.
  [[nodiscard]] passing_usage passing(const std::string& name, const std::vector<std::size_t>& segments) const {
    passing_usage result{name, 0, 0, 0};
    for (const std::size_t segment : segments) {
      for (const ledger_model::life& begun : lives_) {
        if (!passes(begun) || begun.born_segment != segment) continue;
        ++result.count;
        result.bytes += begun.bytes;
        std::int64_t live = 0;
        for (const ledger_model::life& other : lives_) {
          const bool is_live = other.born_moment <= begun.born_moment && begun.born_moment < other.end_moment;
          if (passes(other) && other.born_segment == segment && is_live) live += other.bytes;
        }
        result.peak = std::max(result.peak, live);
      }
    }
    return result;
  }

 private:
  [[nodiscard]] static bool passes(const ledger_model::life& one) { return one.is_over && one.end_segment == one.born_segment; }

  [[nodiscard]] static lifetime_summary summary_of(std::vector<std::int64_t> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    detail::int128 sum = 0;
    for (const std::int64_t value : values) sum += value;
    const std::int64_t middle = values[(values.size() - 1) / 2];
    std::int64_t median = middle == 0 ? 0 : 1;
    while (median != 0 && median <= middle / 2) median *= 2;
    return {values.front(), values.back(), static_cast<std::int64_t>(sum / static_cast<detail::int128>(values.size())), median};
  }

  [[nodiscard]] lifetime_usage row_of(const std::string& operation, std::int64_t least,
                                      const std::vector<std::size_t>& members) const {
    lifetime_usage row;
    row.operation = operation;
    row.least_size = least;
    std::vector<std::int64_t> in_allocations;
    std::vector<std::int64_t> in_stamps;
    for (const std::size_t index : members) {
      const ledger_model::life& one = lives_[index];
      ++row.allocation_count;
      row.allocations += one.bytes;
      std::int64_t live = 0;
      for (const std::size_t other : members) {
        const ledger_model::life& beside = lives_[other];
        live += beside.born_moment <= one.born_moment && (!beside.is_over || one.born_moment < beside.end_moment);
      }
      row.peak_blocks = std::max(row.peak_blocks, live);
      if (!one.is_over) continue;
      ++row.deallocation_count;
      row.deallocations += one.bytes;
      in_allocations.push_back(static_cast<std::int64_t>(one.blocks_until_end - index - 1));
      in_stamps.push_back(static_cast<std::int64_t>(one.end_stamp - one.born_stamp));
      if (!passes(one)) continue;
      ++row.passing_count;
      row.passing_bytes += one.bytes;
    }
    row.in_allocations = summary_of(std::move(in_allocations));
    row.in_ns = summary_of(std::move(in_stamps));
    return row;
  }

  const ledger_model& model_;
  const model_names& names_;
  const std::vector<ledger_model::life>& lives_;
};

}  // namespace memprof::property
