#pragma once

#include <memprof/format/function_name.hpp>
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
/// What a PyTorch memory snapshot says, whatever it is encoded in: docs/formats.md has the keys.

namespace memprof::inline MEMPROF_ABI::detail {

/// Stacks of frames, each once: a stack is its innermost frame and the stack around that; 0 is the empty one.
///
/// What PyTorch's own viewer leaves out as well is left out: the unwinder, the interpreter, dispatch.
class torch_stacks {
 public:
  struct node {
    std::uint32_t around = 0;
    label name = 0;
  };

  /// The id of a frame, `name (file:line)` with the file's own name and a short one of the function; 0: it is left out.
  [[nodiscard]] label frame(std::string_view name, std::string_view file, std::int64_t line) {
    if (is_noise(name, file)) return 0;
    return names_.intern(frame_name(name, file, std::to_string(line)));
  }
  /// The stack of a frame within another one.
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

  label_table names_;
  std::vector<node> nodes_{node{}};
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

/// A pool of the allocator: both numbers are 0 for its own.
struct torch_pool {
  std::int64_t first = 0;
  std::int64_t second = 0;

  bool operator==(const torch_pool&) const = default;
};

/// An entry of `device_traces`.
struct torch_event {
  enum class action_type : std::uint8_t { other, alloc, free_requested, free_completed, segment_alloc, segment_free, oom };

  action_type action = action_type::other;
  std::uint64_t address = 0;  ///< of `oom`: bytes free on the device
  std::uint64_t bytes = 0;    ///< of blocks: as they were asked for
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
  torch_pool pool;
  optional_category category;
  std::uint32_t stack = 0;
  label metadata = 0;
};

/// A block of a segment; those that are free are left out.
struct torch_block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< as they were asked for
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
};

/// An entry of `external_annotations`.
struct torch_annotation {
  std::string name;
  std::int64_t time_us = 0;
  bool is_begin = false;
};

/// One value under a key, of whatever encoding.
struct torch_field {
  std::string_view key;
  std::optional<std::int64_t> integer;
  std::string_view text;

  /// False if the value must be a number of this kind and is not. An address may be any; others are not less than 0.
  [[nodiscard]] bool to(std::uint64_t& out) const noexcept {
    if (integer && *integer >= 0) out = static_cast<std::uint64_t>(*integer);
    return integer && *integer >= 0;
  }
  [[nodiscard]] bool to(std::int64_t& out) const noexcept {
    if (integer) out = *integer;
    return integer.has_value();
  }
};

[[nodiscard]] inline torch_event::action_type action_of(std::string_view name) noexcept {
  using type = torch_event::action_type;
  if (name == "alloc") return type::alloc;
  if (name == "free_requested") return type::free_requested;
  if (name == "free_completed" || name == "free") return type::free_completed;
  if (name == "segment_alloc" || name == "segment_map") return type::segment_alloc;
  if (name == "segment_free" || name == "segment_unmap") return type::segment_free;
  return name == "oom" ? type::oom : type::other;
}

/// False if the field must be of another type. Keys that mean nothing here are taken as they are; `frames` and pools are not
/// fields, since they are no single values.
[[nodiscard]] inline bool set(torch_event& event, const torch_field& field, torch_stacks& names) {
  if (field.key == "addr" || field.key == "device_free") return field.to(event.address);
  if (field.key == "size") return field.to(event.bytes);
  if (field.key == "stream") return field.to(event.stream);
  if (field.key == "time_us") return field.to(event.time_us);
  if (field.key == "action") event.action = action_of(field.text);
  if (field.key == "category") event.category = category_from_string(field.text);
  if (field.key == "user_metadata" && !field.text.empty()) event.metadata = names.name_of(field.text);
  return true;
}

[[nodiscard]] inline bool set(torch_segment& segment, const torch_field& field) {
  if (field.key == "device") return field.to(segment.device);
  if (field.key == "address") return field.to(segment.address);
  if (field.key == "total_size") return field.to(segment.total_size);
  if (field.key == "allocated_size") return field.to(segment.allocated_size);
  if (field.key == "active_size") return field.to(segment.active_size);
  if (field.key == "requested_size") return field.to(segment.requested_size);
  if (field.key == "stream") return field.to(segment.stream);
  if (field.key == "segment_type") segment.type = field.text;
  if (field.key == "is_expandable") segment.is_expandable = field.integer.value_or(0) != 0;
  return true;
}

/// A block while it is read: old snapshots have neither its address nor what was asked for.
struct torch_block_fields {
  torch_block block;
  std::uint64_t size = 0;
  bool has_address = false;
  bool has_requested_size = false;
  bool is_active = false;

  [[nodiscard]] bool set(const torch_field& field) {
    if (field.key == "address") return has_address = true, field.to(block.address);
    if (field.key == "size") return field.to(size);
    if (field.key == "requested_size") return has_requested_size = true, field.to(block.bytes);
    if (field.key == "state") {
      is_active = field.text != "inactive";
      // The second is what PyTorch's documentation calls it.
      block.is_awaited = field.text == "active_pending_free" || field.text == "active_awaiting_free";
    }
    return true;
  }
  /// Adds the block to its segment; `next` is where it begins if it does not say, and then where the next one does.
  void add_to(torch_segment& segment, std::uint64_t& next) {
    if (!has_address) block.address = next;
    next = block.address + size;
    if (!has_requested_size) block.bytes = size;
    if (is_active) segment.blocks.push_back(block);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
