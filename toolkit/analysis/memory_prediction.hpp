#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/trace/device_description.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What a run takes of a CUDA device, as a sum of named parts, and whether the device has room for it. docs/predicted_memory.md
/// has the sources of what is not simulated.

namespace memprof::inline MEMPROF_ABI {

class allocation_sequence;
struct profile;

/// A part of what a run takes, in bytes.
struct memory_part {
  static constexpr std::int64_t not_known = -1;

  std::string name;             ///< "parameters", "CUDA context"
  std::int64_t bytes = 0;       ///< what is counted
  std::int64_t least = 0;       ///< it is at least so much
  std::int64_t most = 0;        ///< and at most so much; `not_known`: nothing is known, so nothing is counted
  bool is_of_allocator = true;  ///< whether it is in what the allocator reserves
  std::string source = {};      ///< who measured it where; empty: it is simulated, or the user's number

  [[nodiscard]] bool is_known() const noexcept { return most != not_known; }

  bool operator==(const memory_part&) const = default;
};

/// The parts of what a run takes of a device.
struct memory_prediction {
  std::vector<memory_part> parts;

  /// What is counted: the sum of all parts.
  [[nodiscard]] std::int64_t total() const noexcept;
  /// What the allocator reserves of a device without a limit: the sum of its parts.
  [[nodiscard]] std::int64_t reserved() const noexcept;
  /// What is counted besides what the allocator reserves, and the least and the most that it may be. Parts that are not known
  /// count nothing.
  [[nodiscard]] std::int64_t besides() const noexcept;
  [[nodiscard]] std::int64_t least_besides() const noexcept;
  [[nodiscard]] std::int64_t most_besides() const noexcept;

  bool operator==(const memory_prediction&) const = default;
};

/// The parts of a run whose blocks are in `space` of its profile, of which the allocator reserves `reserved` bytes: blocks at the
/// peak by category, workspaces of libraries that the profile lists, what the allocator adds by rounding and fragmentation, and
/// the parts besides, and then `others`, which the run does not tell. `context`, if given, is the user's number for the CUDA
/// context; `unused_in_pools` is what private pools held free of the reserved bytes.
[[nodiscard]] memory_prediction predict_memory(const profile& run, std::string_view space, std::int64_t reserved,
                                               const device_description& device, std::optional<std::int64_t> context = {},
                                               const std::vector<memory_part>& others = {}, std::int64_t unused_in_pools = 0);

/// Whether a run fits on a device with all parts.
struct predicted_fit {
  memory_fit fit;  ///< with what is counted besides the allocator's memory
  memory_prediction prediction;
  bool is_certain = true;  ///< whether the answer is the same with the least and the most that is known of each part

  [[nodiscard]] bool fits() const noexcept { return fit.fits(); }
};

/// Judges the steps of a run in a space of its profile on a CUDA device: the capacity of `options`, and `context` of it, are the
/// device's. `others` are parts besides the allocator's which the run does not tell. Costs two to six replays. Raises an error if
/// the options are invalid.
[[nodiscard]] predicted_fit predict_fit(const allocation_sequence& sequence, const profile& run, std::string_view space,
                                        const device_description& device, caching_allocator_options options = {},
                                        std::optional<std::int64_t> context = {}, const std::vector<memory_part>& others = {});

}  // namespace memprof::inline MEMPROF_ABI
