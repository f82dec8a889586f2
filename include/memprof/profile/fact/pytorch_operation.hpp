#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Totals over all calls of one PyTorch operator with the same input shapes, as counted by `track_pytorch_ops`.
struct pytorch_operation {
  std::string name;                 ///< for example "aten::addmm"
  std::string input_shapes;         ///< for example "[512], [4, 768], [768, 512]"; "[]" is a scalar tensor
  std::int64_t count = 0;           ///< calls
  std::int64_t cpu_time_ns = 0;     ///< inclusive
  std::int64_t device_time_ns = 0;  ///< inclusive, between events in the current stream; 0: not measured
  std::int64_t cpu_memory = 0;      ///< self, bytes: allocated - freed
  std::int64_t device_memory = 0;   ///< likewise, on devices whose allocations the capture sees

  bool operator==(const pytorch_operation&) const = default;

  static constexpr std::string_view table = "pytorch_operations";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("input_shapes", row.input_shapes);
    visit("count", row.count);
    visit("cpu_time_ns", row.cpu_time_ns);
    visit("device_time_ns", row.device_time_ns);
    visit("cpu_memory", row.cpu_memory);
    visit("device_memory", row.device_memory);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
