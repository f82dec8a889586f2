#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/owner_sums.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void owner_sum::add(const held_bytes& held) {
  bytes += held.bytes;
  blocks += held.blocks;
  allocated = allocated < 0 || held.allocated < 0 ? -1 : allocated + held.allocated;
  if (held.bytes != 0 || held.blocks != 0) paths.insert(held.path);
}

std::vector<owner_sum>& sums_of_owner(owner_sums& sums, const std::string& owner, std::size_t runs) {
  std::vector<owner_sum>& found = sums[owner];
  found.resize(runs);
  return found;
}

owner_sums sums_by_category(const std::vector<const compared_run*>& runs) {
  owner_sums sums;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const owned_bytes& each : runs[run]->by_category) {
      owner_sum& sum = sums_of_owner(sums, each.owner, runs.size())[run];
      sum.bytes += each.bytes;
      sum.blocks += each.blocks;
    }
  }
  return sums;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
