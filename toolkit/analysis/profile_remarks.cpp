#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/contradictions.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// The first allocation that exceeded the capacity, as a remark.
std::string shortfall_remark(const profile& of, const space_profile& space) {
  const capacity_shortfall& full = space.first_shortfall;
  std::string text = "an allocation of " + std::to_string(full.requested) + " bytes";
  if (!full.core.empty()) text += " on core " + full.core;
  if (!full.operation.empty()) text += " in operation " + full.operation;
  const auto index = static_cast<std::size_t>(full.segment);
  if (full.segment >= 0 && index < of.segments.size()) text += " in segment " + of.segments[index].name;
  return text + " was the first to exceed the capacity: " + std::to_string(full.free) + " bytes were free";
}

/// Why the capacity of a core is not the device's memory.
std::string core_capacity_remark(const space_profile& space) {
  return "each core has " + std::to_string(space.capacity) + " bytes of " + space.name +
         ", but the bytes here are totals across all cores: the device memory is not taken from the profile";
}

/// The contradictions of a space and of the memories that contain it.
vector<std::string> contradictions_around(const profile& of, const space_profile& space) {
  vector<std::string> sentences = contradictions(of, space);
  for (const memory_profile& memory : of.memories) {
    bool is_around = false;
    for (const owned_bytes& part : memory.spaces) is_around = is_around || part.owner == space.name;
    if (!is_around) continue;
    for (std::string& sentence : contradictions(of, memory)) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace
}  // namespace detail

std::vector<std::string> remarks_on(const profile& of, const space_profile& space) {
  std::vector<std::string> remarks(of.provenance.remarks.begin(), of.provenance.remarks.end());
  if (of.provenance.planned) remarks.emplace_back("the bytes are what the compiler planned: nothing was measured");
  if (space.capacity_is_per_core) remarks.push_back(detail::core_capacity_remark(space));
  if (space.first_shortfall.requested != 0) remarks.push_back(detail::shortfall_remark(of, space));
  for (std::string& sentence : detail::contradictions_around(of, space)) {
    remarks.push_back("the profile contradicts itself: " + std::move(sentence));
  }
  if (of.provenance.assumed) {
    remarks.emplace_back("the profile is not exact: the bytes rest on values or sizes that the simulated run assumed");
  } else if (!of.exact) {
    remarks.emplace_back("the profile is not exact: events were lost or memory spaces merged, so the bytes may be too small");
  }
  for (const auto& [source, reason] : rows_of<missing_source>(of.facts)) {
    remarks.push_back(detail::on_one_line(source) + " not captured: " + detail::on_one_line(reason));
  }
  for (const auto& [path] : rows_of<unrecorded_module>(of.facts)) {
    remarks.push_back("what " + path + " allocated is missing: it has a registry of its own; link the executable with -rdynamic");
  }
  if (const std::optional<process_account> process = process_account_of(of);
      process && detail::has_unrecorded_heap(*process) && !detail::is_device_name(space.name)) {
    remarks.push_back(detail::short_bytes(process->reading.unrecorded_heap_bytes) +
                      " of malloc's blocks were not recorded: the bytes here lack them");
  }
  if (!of.complete && of.provenance.format.empty()) {
    remarks.emplace_back("the capture had not ended: these are the bytes so far");
  }
  if (of.mode == run_mode::no_dispatch) {
    remarks.emplace_back("run mode no_dispatch: sizes and lifetimes are real, nothing was allocated");
  }
  return remarks;
}

std::vector<std::string> remarks_on(const profile& of, const std::vector<const space_profile*>& spaces) {
  std::vector<std::string> remarks;
  std::set<std::string> said;
  for (const space_profile* const space : spaces) {
    for (std::string& remark : remarks_on(of, *space)) {
      if (said.insert(remark).second) remarks.push_back(std::move(remark));
    }
  }
  return remarks;
}

std::vector<std::string> remarks_on(const profile& of) {
  std::vector<const space_profile*> spaces;
  for (const space_profile& space : of.spaces) spaces.push_back(&space);
  return remarks_on(of, spaces);
}

std::vector<std::string> titled_remarks(const std::vector<std::string>& titles,
                                        const std::vector<std::vector<std::string>>& remarks) {
  std::vector<std::string> titled;
  std::set<std::string> said;
  for (std::size_t run = 0; run < remarks.size(); ++run) {
    for (const std::string& remark : remarks[run]) {
      const bool is_common = std::all_of(remarks.begin(), remarks.end(), [&](const std::vector<std::string>& each) {
        return std::find(each.begin(), each.end(), remark) != each.end();
      });
      std::string text = is_common ? remark : titles[run] + ": " + remark;
      if (said.insert(text).second) titled.push_back(std::move(text));
    }
  }
  return titled;
}

}  // namespace memprof::inline MEMPROF_ABI
