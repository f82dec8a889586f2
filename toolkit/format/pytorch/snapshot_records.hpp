#pragma once

#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// The contents of a PyTorch memory snapshot in any encoding; docs/formats.md has the keys.

namespace memprof::inline MEMPROF_ABI::detail {

/// Distinct stacks of frames: a stack is its innermost frame and the stack around it; 0 is the empty stack.
///
/// Frames that PyTorch's own viewer omits are left out: the unwinder, the interpreter, dispatch. So are those of the library,
/// unless `stack_frames::all` are asked for.
class torch_stacks {
 public:
  explicit torch_stacks(stack_frames frames = stack_frames::own) noexcept : kept_(frames) {}

  struct node {
    std::uint32_t around = 0;
    label name = 0;
  };

  /// The id of a frame, `name (file:line)` with the file's base name and a short function name; 0 if it is left out.
  [[nodiscard]] label frame(std::string_view name, std::string_view file, std::int64_t line) {
    if (is_noise(name, file)) return 0;
    if (kept_ == stack_frames::own && is_library_function(short_function_name(name))) return 0;
    return names_.intern(frame_name(name, file, std::to_string(line)));
  }
  /// The stack of a frame called within another stack.
  [[nodiscard]] std::uint32_t within(std::uint32_t around, label name) {
    if (name == 0) return around;
    const auto [found, is_new] = ids_.try_emplace(std::uint64_t{around} << 32 | name, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({around, name});
    return found->second;
  }
  [[nodiscard]] bool contains(std::uint32_t stack) const noexcept { return stack < nodes_.size(); }
  [[nodiscard]] const node& operator[](std::uint32_t stack) const noexcept { return nodes_[stack]; }
  [[nodiscard]] std::string_view name(label frame) const noexcept { return names_.text(frame); }
  [[nodiscard]] label name_of(std::string_view text) { return names_.intern(text); }

 private:
  [[nodiscard]] static bool is_noise(std::string_view name, std::string_view file) noexcept {
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

  stack_frames kept_;
  label_table names_;
  std::vector<node> nodes_{node{}};
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

/// The number under which pinned host memory is read like a device: beyond those that PyTorch permits.
inline constexpr std::size_t torch_pinned = 254;

/// "device N", for messages.
[[nodiscard]] inline std::string torch_device_name(std::size_t number) {
  return number == torch_pinned ? "pinned host memory" : "device " + std::to_string(number);
}

/// The keys of a snapshot that are read; others are reported.
[[nodiscard]] inline bool is_torch_section(std::string_view key) noexcept {
  return key == "segments" || key == "device_traces" || key == "host_segments" || key == "host_traces" ||
         key == "trace_alloc_overflowed" || key == "allocator_settings" || key == "external_annotations";
}

/// A pool of the allocator; both numbers are 0 for its default pool.
struct torch_pool {
  std::int64_t first = 0;
  std::int64_t second = 0;

  bool operator==(const torch_pool&) const = default;
};

/// An entry of `device_traces`.
struct torch_event {
  /// `other` is an action of a newer PyTorch; `nothing` is one that does not concern memory.
  enum class action_type : std::uint8_t {
    absent,
    other,
    nothing,
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    oom
  };

  action_type action = action_type::absent;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;                   ///< of blocks: the requested size
  std::optional<std::uint64_t> device_free;  ///< of `oom`: bytes free on the device
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
  torch_pool pool;
  optional_category category;
  std::uint32_t stack = 0;
  label metadata = 0;
  label unknown_action = 0;  ///< name of the action, if it is `other`
  std::uint32_t seen = 0;    ///< one bit per key in `torch_event_keys`

  static constexpr std::array<std::string_view, 10> keys{"action",  "addr",    "size",          "frames",   "stream",
                                                         "time_us", "pool_id", "user_metadata", "category", "device_free"};
  [[nodiscard]] bool has_address() const noexcept { return (seen & 2U) != 0; }
  [[nodiscard]] bool has_size() const noexcept { return (seen & 4U) != 0; }
};

/// A block of a segment that is not free.
struct torch_block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< the requested size
  std::uint64_t size = 0;   ///< rounded up
  std::uint32_t stack = 0;
  bool is_awaited = false;  ///< freed, and streams may still use it
};

/// An entry of `segments`.
struct torch_segment {
  std::int64_t device = 0;
  std::uint64_t address = 0;
  std::uint64_t total_size = 0;
  std::int64_t allocated_size = 0;
  std::int64_t active_size = 0;
  std::int64_t requested_size = 0;
  std::int64_t stream = 0;
  std::string type;
  torch_pool pool;
  bool is_expandable = false;
  std::vector<torch_block> blocks;
  std::uint32_t seen = 0;  ///< one bit per key

  static constexpr std::array<std::string_view, 11> keys{"device",          "address",        "total_size", "allocated_size",
                                                         "active_size",     "requested_size", "stream",     "segment_type",
                                                         "segment_pool_id", "is_expandable",  "blocks"};
};

/// An entry of `external_annotations`.
struct torch_annotation {
  std::string name;
  std::int64_t time_us = 0;
  bool is_begin = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
