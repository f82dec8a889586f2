#pragma once

#include <memprof/record/capture_backends.hpp>

#include <cstdint>
#include <string>

namespace memprof_python {

/// The library that records libtorch (memprof/torch/backend.h), once it is loaded.
class torch_library {
 public:
  /// Loads the library for the process. Throws `memprof::error` if it does not load, or is not of this memprof.
  static void load(const std::string& path);
  [[nodiscard]] static bool is_loaded() noexcept;

  /// Begins to record libtorch for the active capture. Throws `memprof::error` if libtorch refuses.
  [[nodiscard]] static memprof::detail::capture_backends attach();

  /// Describes the block of a tensor, given `Tensor._cdata`. Does nothing while no capture is active.
  static void annotate(std::uintptr_t tensor, const std::string& name, const std::string& category);

  /// Counts operators from `begin_operators` to `end_operators`; pairs nest. The library must be loaded.
  static void begin_operators();
  static void end_operators();
};

}  // namespace memprof_python
