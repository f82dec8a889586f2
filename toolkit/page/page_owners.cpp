#include <memprof/config.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

page_owners::page_owners(const run_survey& survey, const std::vector<std::uint8_t>& spaces, std::size_t count) {
  for (const std::uint8_t id : spaces) choose(survey.owners(id), by_space_[id], count);
}

void page_owners::choose(const std::vector<run_survey::owner_total>& totals, space_owners& chosen, std::size_t count) {
  std::vector<std::size_t> keys;
  for (std::size_t key = 0; key < totals.size(); ++key) {
    if (totals[key].greatest > 0) keys.push_back(key);
  }
  count = std::min(count, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end(),
                    [&](std::size_t left, std::size_t right) {
                      const std::int64_t of_left = totals[left].greatest;
                      const std::int64_t of_right = totals[right].greatest;
                      return of_left != of_right ? of_left > of_right : left < right;
                    });
  chosen.slot_of_key.assign(totals.size(), 0);
  std::array<bool, category_names.size()> has_others{};
  std::vector<bool> is_chosen(totals.size());
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t key = keys[rank];
    is_chosen[key] = true;
    chosen.slot_of_key[key] = static_cast<std::uint8_t>(rank);
    const auto node = static_cast<std::int64_t>(key / category_names.size());
    chosen.owners.push_back(index_of({node - 1, static_cast<std::uint32_t>(key % category_names.size())}));
  }
  for (std::size_t category = 0; category < category_names.size(); ++category) {
    const auto slot = static_cast<std::uint8_t>(chosen.owners.size());
    for (std::size_t key = category; key < totals.size(); key += category_names.size()) {
      if (is_chosen[key] || totals[key].greatest < 0) continue;
      chosen.slot_of_key[key] = slot;
      has_others[category] = true;
    }
    if (has_others[category]) chosen.owners.push_back(index_of({page_owner::others, static_cast<std::uint32_t>(category)}));
  }
}

std::uint32_t page_owners::index_of(const page_owner& owner) {
  const auto found = std::find_if(owners_.begin(), owners_.end(), [&](const page_owner& known) {
    return known.operation == owner.operation && known.category == owner.category;
  });
  if (found == owners_.end()) {
    owners_.push_back(owner);
    return static_cast<std::uint32_t>(owners_.size() - 1);
  }
  return static_cast<std::uint32_t>(found - owners_.begin());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
