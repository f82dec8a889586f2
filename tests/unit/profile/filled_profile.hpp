#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/reflect.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace memprof_tests {

/// Gives every field of a reflected value another value than its default and than the field before, vectors two elements.
template <class T>
void fill(T& target, std::int64_t& counter) {
  if constexpr (memprof::reflected<T>) {
    memprof::for_each_field(target, [&](std::string_view, auto& field) { fill(field, counter); });
  } else if constexpr (std::is_same_v<T, bool>) {
    target = !target;
  } else if constexpr (std::is_enum_v<T>) {
    target = static_cast<T>(1);
  } else if constexpr (std::is_floating_point_v<T>) {
    target = static_cast<T>(++counter) + T{1} / T{3};
  } else if constexpr (std::is_integral_v<T>) {
    target = static_cast<T>(++counter);
  } else if constexpr (std::is_same_v<T, std::string>) {
    target = "text \"" + std::to_string(++counter) + "\"\n\t\\ \xc3\xa9";
  } else if constexpr (std::is_same_v<T, memprof::vector<memprof::fact_table>>) {
    const std::string text = "text " + std::to_string(++counter);
    target = {{"first " + text, {"name", "bytes"}, {{text, ++counter}, {std::string{}, ++counter}}},
              {"second " + text, {"seconds"}, {{0.25}}}};
  } else {
    target.resize(2);
    for (auto& element : target) fill(element, counter);
  }
}

/// A profile in which no field has its default, and whose indexes lead to something.
inline memprof::profile filled_profile() {
  memprof::profile result;
  std::int64_t counter = 0;
  fill(result, counter);
  for (auto& space : result.spaces) {
    space.peak_segment = space.first_shortfall.segment = 1;
    for (auto& failure : space.out_of_memory) failure.segment = 1;
  }
  for (auto& memory : result.memories) memory.peak_segment = 1;
  result.operations[0].parent = -1;
  result.operations[1].parent = 0;
  return result;
}

/// What a short real capture looks like: one space, one segment, one operation.
inline memprof::profile small_profile() {
  memprof::profile result;
  result.exact = true;
  result.library_version = "0.1.0";
  result.complete = true;
  result.segments = {{"END_TRACE", 0, 1000}};
  memprof::space_profile& space = result.spaces.emplace_back();
  space.name = "cpu";
  space.cumulative_peak = 4096;
  space.allocations = 4096;
  space.deallocations = 4096;
  space.allocation_count = 1;
  space.deallocation_count = 1;
  space.peak_segment = 0;
  space.peak_operation = "forward";
  space.live_at_peak = {4096,
                        1,
                        {{"forward", 4096, 1}},
                        0,
                        0,
                        {{"activation", 4096, 1}},
                        {{0x1000, 4096, "forward", memprof::category::activation, "x", "[32, 32]", "float32"}}};
  memprof::segment_usage& usage = space.segments.emplace_back();
  usage.segment = "END_TRACE";
  usage.segment_peak = 4096;
  usage.cumulative_peak = 4096;
  result.operations.push_back({"forward", "forward", -1, 1, {}});
  return result;
}

}  // namespace memprof_tests
