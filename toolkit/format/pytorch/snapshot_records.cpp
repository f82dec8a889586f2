#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

bool is_noise(std::string_view name, std::string_view file) noexcept {
  // The lists of torch/cuda/_memory_viz.py.
  constexpr std::array<std::string_view, 8> functions{
      "unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start", "__libc_start_main", "PyEval_", "PyObject_",
      "PyFunction_"};
  constexpr std::array<std::string_view, 10> files{"core/boxing",
                                                   "/Register",
                                                   "/Redispatch",
                                                   "pythonrun.c",
                                                   "Modules/main.c",
                                                   "Objects/call.c",
                                                   "Objects/methodobject.c",
                                                   "pycore_ceval.h",
                                                   "ceval.c",
                                                   "cpython/abstract.h"};
  for (const std::string_view part : functions) {
    if (name.find(part) != name.npos) return true;
  }
  for (const std::string_view part : files) {
    if (file.find(part) != file.npos) return true;
  }
  return false;
}

}  // namespace

label torch_stacks::frame(std::string_view name, std::string_view file, std::int64_t line) {
  if (is_noise(name, file)) return 0;
  if (kept_ == stack_frames::own && is_library_function(bare_function_name(name))) return 0;
  return names_.intern(frame_name(name, file, std::to_string(line)));
}

std::uint32_t torch_stacks::within(std::uint32_t around, label name) {
  if (name == 0) return around;
  const auto [found, is_new] = ids_.try_emplace(std::uint64_t{around} << 32 | name, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({around, name});
  return found->second;
}

std::string torch_device_name(std::size_t number) {
  return number == torch_pinned ? "pinned host memory" : "device " + std::to_string(number);
}

bool is_torch_section(std::string_view key) noexcept {
  return key == "segments" || key == "device_traces" || key == "host_segments" || key == "host_traces" ||
         key == "trace_alloc_overflowed" || key == "allocator_settings" || key == "external_annotations";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
