#pragma once

#include <memprof/record/capture_backends.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

struct memprof_torch_simulation;

namespace memprof_python {

/// The libraries that record libtorch and that simulate it (memprof/torch/backend.h), once they are loaded.
class torch_library {
 public:
  /// Loads the library for a mode. Throws `memprof::error` if it does not load, or is not of this memprof.
  static void load(const std::string& path, memprof::run_mode mode);
  [[nodiscard]] static bool is_loaded(memprof::run_mode mode) noexcept;

  /// Names the stack that asks for a block of that size: the label of its allocation, or 0.
  using name_of_caller = std::uint32_t (*)(std::size_t bytes);

  /// Begins to record or simulate libtorch for the active capture; `caller` is asked for each block, unless it is null. Throws
  /// `memprof::error` if libtorch refuses.
  [[nodiscard]] static memprof::detail::capture_backends attach(memprof::run_mode mode, const memprof::device_description& device,
                                                                name_of_caller caller);

  /// Records CUDA devices, too, for the capture that records libtorch now, if there is one and its library can. CUDA must be
  /// initialised.
  static void attach_cuda();

  /// Describes the block of a tensor, given `Tensor._cdata`. Does nothing while no capture records libtorch.
  static void annotate(std::uintptr_t tensor, const std::string& name, const std::string& category);

  /// Counts operators from `begin_operators` to `end_operators`; pairs nest. A library must be loaded.
  static void begin_operators();
  static void end_operators();
  /// What the library that simulates can do besides; null if it is not loaded.
  [[nodiscard]] static const memprof_torch_simulation* simulation() noexcept;
};

}  // namespace memprof_python
