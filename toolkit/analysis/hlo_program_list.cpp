#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::vector<std::string> hlo_program_list::add(const xplane_file& worker) {
  std::vector<std::string> faults;
  for (const xplane_program& each : worker.programs()) {
    heap_simulation simulated;
    try {
      const hlo_memory memory{worker.file(), each.bytes};
      simulated = memory.simulate(space_);
      for (const std::int64_t space : memory_spaces(memory.program())) {
        if (std::find(spaces_.begin(), spaces_.end(), space) == spaces_.end()) spaces_.push_back(space);
      }
    } catch (const error& fault) {
      faults.push_back("'" + worker.file().path().string() + "': " + each.name + ": " + worker.fault_of(fault));
      continue;
    }
    const auto [found, is_new] = index_of_.try_emplace(each.name, programs_.size());
    if (is_new) programs_.push_back({each.name, 0, 0, {}});
    hlo_listed_program& listed = programs_[found->second];
    ++listed.workers;
    for (const xplane_runs& runs : worker.runs()) listed.runs += runs.program == each.name ? runs.count : 0;
    if (listed.workers == 1 || simulated.peak > listed.greatest.peak) listed.greatest = std::move(simulated);
  }
  return faults;
}

std::vector<hlo_listed_program> hlo_program_list::programs() const {
  std::vector<hlo_listed_program> sorted = programs_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const hlo_listed_program& left, const hlo_listed_program& right) {
    return left.greatest.peak > right.greatest.peak;
  });
  return sorted;
}

found_program find_program(const xplane_file& worker, std::string_view name) {
  std::vector<const xplane_program*> meant;
  for (const xplane_program& each : worker.programs()) {
    if (is_named(each, name)) meant.push_back(&each);
  }
  if (meant.empty()) return {};
  for (const xplane_runs& runs : worker.runs()) {
    const auto found = std::find_if(meant.begin(), meant.end(), [&](const auto* each) { return each->name == runs.program; });
    if (found != meant.end()) return {*found, meant.size()};
  }
  return {meant.front(), meant.size()};
}

}  // namespace memprof::inline MEMPROF_ABI
