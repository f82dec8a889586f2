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
  [[nodiscard]] label frame(std::string_view name, std::string_view file, std::int64_t line);
  /// The stack of a frame called within another stack.
  [[nodiscard]] std::uint32_t within(std::uint32_t around, label name);
  [[nodiscard]] bool contains(std::uint32_t stack) const noexcept { return stack < nodes_.size(); }
  [[nodiscard]] const node& operator[](std::uint32_t stack) const noexcept { return nodes_[stack]; }
  [[nodiscard]] std::string_view name(label frame) const noexcept { return names_.text(frame); }
  [[nodiscard]] label name_of(std::string_view text) { return names_.intern(text); }

 private:
  stack_frames kept_;
  label_table names_;
  std::vector<node> nodes_{node{}};
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

/// The number under which pinned host memory is read like a device: beyond those that PyTorch permits.
inline constexpr std::size_t torch_pinned = 254;

/// "device N", for messages.
[[nodiscard]] std::string torch_device_name(std::size_t number);

/// The keys of a snapshot that are read; others are reported.
[[nodiscard]] bool is_torch_section(std::string_view key) noexcept;

/// A pool of the allocator; both numbers are 0 for its default pool.
struct torch_pool {
  std::int64_t first = 0;
  std::int64_t second = 0;

  bool operator==(const torch_pool&) const = default;
};

/// What happened in an entry of `device_traces`. `other` is an action of a newer PyTorch; `nothing` is one that does not concern
/// memory.
enum class torch_action : std::uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  oom,
  nothing,
  other,
  absent
};

/// The names of those that concern memory.
inline constexpr std::array<std::string_view, 6> torch_action_names{"alloc",         "free_requested", "free_completed",
                                                                    "segment_alloc", "segment_free",   "oom"};

/// An entry of `device_traces`.
struct torch_event {
  torch_action action = torch_action::absent;
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

/// Takes the records of a snapshot, whatever its encoding, as they are read.
class torch_record_sink {
 public:
  /// The number of events of a device so far.
  [[nodiscard]] virtual std::uint64_t event_count(std::size_t number) = 0;
  virtual void setting(std::string_view name, const std::string& value) = 0;
  /// A key of the snapshot that this version does not know: what it holds is missing.
  virtual void unknown_section(std::string_view key) = 0;
  virtual void annotation(const torch_annotation& made) = 0;
  virtual void segment(const torch_segment& made) = 0;
  virtual void event(std::size_t number, const torch_event& happened) = 0;
  /// The ring buffer of the device's history was full, so older events are gone.
  virtual void overflowed(std::size_t number) = 0;

 protected:
  ~torch_record_sink() = default;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
