#include "simulation.hpp"

#include "core.hpp"
#include "torch_library.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memprof/profile/device_json.hpp>
#include <memprof/trace/device_description.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "../memprof/torch/backend.h"

namespace memprof_python {
namespace {

using namespace nb::literals;

/// A CUDA device that a description has: its capacity in bytes, 0 if it has no limit.
[[nodiscard]] std::optional<std::int64_t> cuda_capacity(const std::string& device) {
  const memprof::device_description found = device_named(device);
  for (std::size_t index = 0; index < found.space_count; ++index) {
    if (found.spaces[index].name.view().starts_with("cuda")) return found.spaces[index].capacity;
  }
  return found.name.view().starts_with("cuda") ? std::optional<std::int64_t>{0} : std::nullopt;
}

}  // namespace

memprof::device_description device_named(const std::string& name) {
  if (name.empty()) return {};
  if (name != "cuda") return memprof::find_device(name);
  memprof::device_description device;
  device.name = std::string_view{name};
  return device;
}

// Without the library that simulates, nothing happens.
void bind_simulation(nb::module_& module) {
  module.def("_cuda_capacity", cuda_capacity, "device"_a);
  module.def("_enter_real_scope", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->enter_real_scope();
  });
  module.def("_leave_real_scope", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->leave_real_scope();
  });
  module.def("_execute_in_this_process", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->execute_in_this_process();
  });
  module.def(
      "_device_usage",
      [] {
        const auto* const simulation = torch_library::simulation();
        const memprof_torch_usage now = simulation == nullptr ? memprof_torch_usage{} : simulation->usage();
        return std::tuple{now.live, now.peak, now.allocated, now.allocations, now.deallocations, now.reserved};
      },
      "Of the claimed device: live bytes and their peak; the sums of allocated bytes, allocations and deallocations; reserved "
      "bytes.");
  module.def("_reset_device_peak", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->reset_peak();
  });
  module.def("_reset_device_reserved", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->reset_reserved();
  });
  module.def(
      "_limit_device",
      [](std::int64_t bytes) {
        if (const auto* const simulation = torch_library::simulation()) simulation->limit(bytes);
      },
      "bytes"_a);
}

}  // namespace memprof_python
