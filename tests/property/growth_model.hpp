#pragma once

#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>
#include <memprof/profile/profile.hpp>
#include <property/ledger_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace memprof::property {

using namespace extend;

/// Who grows, from the definitions: every block's life is kept, and what each owner had is added up at the end of every step.
class growth_model {
 public:
  /// `full` is the model's profile with all segments.
  growth_model(const ledger_model& model, const model_names& names, const profile& full, std::size_t segment_names)
      : model_(model), names_(names), full_(full) {
    choose_ends(std::max<std::size_t>(segment_names, 1));
    while (ends_.size() > width_ * detail::step_ends::max_parts) width_ *= 2;
  }

  [[nodiscard]] memprof::vector<owner_growth> growing(const space_profile& space,
                                                      const std::vector<ledger_model::life>& lives) const {
    std::map<std::size_t, std::vector<std::int64_t>> bytes_of;  // by operation, at each end
    for (const ledger_model::life& one : lives) {
      std::vector<std::int64_t>& bytes = bytes_of[one.operation];
      bytes.resize(ends_.size());
      for (std::size_t end = 0; end < ends_.size(); ++end) {
        if (one.born_segment <= ends_[end] && (!one.is_over || one.end_segment > ends_[end])) bytes[end] += one.bytes;
      }
    }
    memprof::vector<owner_growth> result;
    for (const auto& [operation, bytes] : bytes_of) add(result, model_.operation_path(names_, operation), bytes);
    if (!space.reserved.segments.empty()) {
      std::vector<std::int64_t> beyond;
      for (const std::size_t end : ends_) {
        beyond.push_back(
            std::max<std::int64_t>(0, space.reserved.segments[end].current - space.segments[end].cumulative_current));
      }
      add(result, std::string{detail::reserved_beyond_blocks}, beyond);
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const owner_growth& left, const owner_growth& right) { return left.per_step > right.per_step; });
    return result;
  }

 private:
  /// Lets the segments end one after the other: the name that has ended most of them ends the steps.
  void choose_ends(std::size_t segment_names) {
    std::vector<std::string> known;
    std::vector<std::vector<std::size_t>> members;
    std::size_t chosen = 0;
    for (std::size_t number = 0; number < full_.segments.size() - (full_.complete ? 0 : 1); ++number) {
      const std::string& name = full_.segments[number].name;
      const auto row = static_cast<std::size_t>(std::find(known.begin(), known.end(), name) - known.begin());
      if (row == known.size()) {
        if (known.size() == segment_names) continue;
        known.push_back(name);
        members.emplace_back();
      }
      members[row].push_back(number);
      const std::size_t most = members[chosen].size();
      const std::size_t count = members[row].size();
      if (number == 0 || count > most + 1 || (count == most && row > chosen)) {
        chosen = row;
        missed_ = count - 1;
      }
    }
    if (known.empty()) return;
    ends_.assign(members[chosen].begin() + static_cast<std::ptrdiff_t>(missed_), members[chosen].end());
  }

  void add(memprof::vector<owner_growth>& found, const std::string& owner, const std::vector<std::int64_t>& bytes) const {
    if (ends_.size() < 8) return;
    std::vector<detail::part_bytes> parts;
    for (std::size_t first = 0; first < bytes.size(); first += width_) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(first);
      const std::size_t count = std::min(width_, bytes.size() - first);
      const auto end = begin + static_cast<std::ptrdiff_t>(count);
      parts.push_back({*std::min_element(begin, end), *std::max_element(begin, end)});
    }
    const detail::growth_stretch trend = detail::judge_parts(parts.data(), parts.size());
    if (trend.kind != growth_kind::grows) return;
    owner_growth& made = found.emplace_back();
    made.owner = owner;
    made.per_step = static_cast<double>(trend.bytes) / static_cast<double>((trend.end - trend.start) * width_);
    made.since_step = missed_ != 0 && trend.start == 0 ? -1 : static_cast<std::int64_t>(missed_ + trend.start * width_);
    made.within_steps = static_cast<std::int64_t>(width_);
    made.steps = static_cast<std::int64_t>(missed_ + ends_.size());
  }

  const ledger_model& model_;
  const model_names& names_;
  const profile& full_;
  std::vector<std::size_t> ends_;  // the segments that end steps
  std::size_t missed_ = 0;         // how many of their name came before
  std::size_t width_ = 1;
};

/// Fills in who grows, in a profile with all segments.
inline void add_growing(profile& full, const ledger_model& model, const model_names& names, std::size_t segment_names) {
  const growth_model steps{model, names, full, segment_names};
  std::size_t index = 0;
  for (const auto& [id, lives] : model.lives()) {
    full.spaces[index].growing = steps.growing(full.spaces[index], lives);
    ++index;
  }
}

}  // namespace memprof::property
