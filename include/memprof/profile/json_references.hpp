#pragma once

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/profile.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Raises an error unless every index in the profile is valid, so that users of a profile need not check.
inline void check_references(const profile& read, const json_place& root) {
  const auto check = [&](std::int64_t index, std::size_t end, const json_place& place) {
    if (index >= -1 && index < static_cast<std::int64_t>(end)) return;
    raise_about_document(root.source, place.pointer() + " is " + std::to_string(index) +
                                          ", but must be at least -1 and less than " + std::to_string(end));
  };
  const json_place spaces = root["spaces"];
  for (std::size_t index = 0; index < read.spaces.size(); ++index) {
    const space_profile& space = read.spaces[index];
    const json_place place = spaces[index];
    const auto check_count = [&](std::size_t count, const json_place& rows) {
      if (count == read.segments.size()) return;
      raise_about_document(root.source, rows.pointer() + " has " + std::to_string(count) +
                                            " elements, but must have one for each of the " +
                                            std::to_string(read.segments.size()) + " in /segments");
    };
    check_count(space.segments.size(), place["segments"]);
    // A space without blocks on cores has no such rows.
    const json_place cores = place["cores"];
    if (!space.cores.segments.empty() || !space.cores.ranges.empty()) {
      check_count(space.cores.segments.size(), cores["segments"]);
    }
    if (!space.reserved.segments.empty()) check_count(space.reserved.segments.size(), place["reserved"]["segments"]);
    if (!space.active.segments.empty()) check_count(space.active.segments.size(), place["active"]["segments"]);
    // A source that does not report all segments by name has none.
    const auto check_names = [&](std::size_t count, const json_place& rows) {
      if (count == 0 || read.segments_by_name.empty() || count == read.segments_by_name.size()) return;
      raise_about_document(root.source, rows.pointer() + " has " + std::to_string(count) +
                                            " elements, but must have one for each of the " +
                                            std::to_string(read.segments_by_name.size()) + " in /segments_by_name");
    };
    check_names(space.segments_by_name.size(), place["segments_by_name"]);
    check_names(space.cores.segments_by_name.size(), cores["segments_by_name"]);
    check_names(space.reserved.segments_by_name.size(), place["reserved"]["segments_by_name"]);
    check_names(space.active.segments_by_name.size(), place["active"]["segments_by_name"]);
    check(space.peak_segment, read.segments.size(), place["peak_segment"]);
    for (std::size_t row = 0; row < space.out_of_memory.size(); ++row) {
      check(space.out_of_memory[row].segment, read.segments.size(), place["out_of_memory"][row]["segment"]);
    }
    const json_place shortfall = place["first_shortfall"];
    check(space.first_shortfall.segment, read.segments.size(), shortfall["segment"]);
  }
  const json_place memories = root["memories"];
  for (std::size_t index = 0; index < read.memories.size(); ++index)
    check(read.memories[index].peak_segment, read.segments.size(), memories[index]["peak_segment"]);
  const json_place operations = root["operations"];
  for (std::size_t index = 0; index < read.operations.size(); ++index) {
    // Parents come first, so that walks up the tree end.
    check(read.operations[index].parent, index, operations[index]["parent"]);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
