#pragma once

#include <memprof/backend/stack_modules.hpp>
#include <memprof/backend/stack_walk.hpp>
#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// Which library asks CUDA for memory: the owner of blocks that are in no operation of the program.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Finds it by the stack of a callback: what called CUDA. A library that is linked statically is the executable, which is none.
class calling_library {
 public:
  /// Chooses how stacks are walked. It may allocate.
  void prepare() noexcept { walker_.choose(); }

  /// The name of its file, as "libcublas.so.13", for an allocation of `bytes` that this thread makes outside every operation; 0:
  /// none. Not for small blocks where a walk takes ten microseconds.
  [[nodiscard]] label find(std::size_t bytes) const noexcept {
    constexpr std::size_t worth_a_slow_walk = std::size_t{64} << 10;
    constexpr int most_frames = 32;
    if (abi_1::this_thread.innermost_scope != 0) return 0;
    if (bytes < worth_a_slow_walk && std::string_view{walker_.way()} != "libunwind") return 0;
    void* frames[most_frames];
    const int count = walk(frames, most_frames);
    bool is_outside = false;  // of the callback and what called it
    for (int index = 0; index < count; ++index) {
      const loaded_module module = find_module_of(reinterpret_cast<std::uintptr_t>(frames[index]) - 1);
      const std::string_view name = file_of(module);
      const bool is_cuda = is_of(name, "libcuda.so") || is_of(name, "libcupti.so");
      is_outside = is_outside || is_cuda;
      if (!is_outside || is_cuda || is_of(name, "libcudart.so")) continue;
      return name.empty() ? label{0} : event_sink{}.label_of(name);
    }
    return 0;
  }

 private:
  /// A thread's first walk allocates what the walking library keeps until the thread ends.
  [[nodiscard]] int walk(void** frames, int room) const noexcept {
    static constinit thread_local bool has_walked = false;
    if (has_walked) [[likely]] {
      const recording_suppressor hidden;
      return walker_.walk(frames, room);
    }
    const internal_guard hidden;
    has_walked = true;
    return walker_.walk(frames, room);
  }

  /// Without its folder; empty for the executable.
  [[nodiscard]] static std::string_view file_of(const loaded_module& module) noexcept {
    const std::string_view path = module.path == nullptr ? std::string_view{} : module.path;
    return path.substr(path.rfind('/') + 1);
  }
  [[nodiscard]] static bool is_of(std::string_view name, std::string_view library) noexcept {
    return name.substr(0, library.size()) == library;
  }

  stack_walker walker_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda

#endif  // MEMPROF_ENABLED
