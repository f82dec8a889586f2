#pragma once

#include <memprof/profile/profile.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the memory of a training step consists of, and whether it fits: the definitions of tt-train's analyze_memory.py, extended
/// to repeated phases and, where blocks have categories, exact sizes. docs/analyze.md explains them.

namespace memprof::inline MEMPROF_ABI {

/// Expected sizes in bytes.
struct breakdown_options {
  std::optional<std::int64_t> model_size = {};      ///< default: two bytes (bf16) per parameter, if their number is known
  std::optional<std::int64_t> optimizer_size = {};  ///< default: twice the model's (AdamW's two moments)
  std::optional<std::int64_t> gradients_size = {};  ///< default: the model's
  /// Default: the capacity of the space, if the profile has it; for a log of tt-train's tracker, `tracker_device_memory`.
  std::optional<std::int64_t> device_memory = {};
  bool use_actual_sizes = false;  ///< whether the parts of the peak use measured sizes for model and optimizer
};

/// The device's memory that tt-train's analyze_memory.py assumes: 12 GiB, which its help calls 12GB.
inline constexpr std::int64_t tracker_device_memory = std::int64_t{12} << 30;

/// Whether the profile was read from a log of tt-train's tracker, for which analyze_memory.py was written.
[[nodiscard]] bool is_tracker_log(const profile& of) noexcept;

/// The source of the device's memory size; `none` if no device was named; `assumed`: `tracker_device_memory`.
enum class device_memory_source : std::uint8_t { none, option, profile, assumed };

/// The names of `device_memory_source`, in the order of its values.
inline constexpr std::array<std::string_view, 4> device_memory_source_names{"none", "option", "profile", "default"};

/// How a size was measured: by the changes in the segments of its phase, or by the category of blocks.
enum class size_source : std::uint8_t { none, phases, categories };

/// The names of `size_source`, in the order of its values.
inline constexpr std::array<std::string_view, 3> size_source_names{"none", "phases", "categories"};

/// A measured size.
struct measured_size {
  std::optional<std::int64_t> actual;
  size_source from = size_source::none;
};

/// A measured size and its expectation, if known.
struct compared_size : measured_size {
  std::optional<std::int64_t> expected;

  /// (actual - expected) / expected * 100; 0 if nothing was expected. Nothing if either is unknown.
  [[nodiscard]] std::optional<double> difference_percent() const;
};

/// The parts of a peak, in the order in which a picture stacks them, bottom first.
enum class peak_part : std::uint8_t { other, model, gradients, optimizer, activations };

inline constexpr std::size_t peak_parts = 5;

/// The answers for one memory space of a profile, in bytes.
struct memory_breakdown {
  std::optional<std::int64_t> parameters;  ///< their number, if the profile has it
  compared_size model;
  compared_size optimizer;
  compared_size gradients;
  measured_size activations;
  std::int64_t peak = 0;
  std::optional<std::int64_t> device_memory;  ///< nothing: none is known
  device_memory_source device_memory_from = device_memory_source::none;
  /// The parts of the peak. From a profile with categories: what was live at the peak, so they add up to it. Otherwise by the
  /// script's definition, which takes the parts from different moments: they may be negative, and their sum may exceed the peak.
  std::array<std::int64_t, peak_parts> parts{};
  bool parts_are_live_at_peak = false;
  std::vector<std::string> remarks;

  [[nodiscard]] std::int64_t part(peak_part which) const noexcept { return parts[static_cast<std::size_t>(which)]; }
  [[nodiscard]] std::int64_t& part(peak_part which) noexcept { return parts[static_cast<std::size_t>(which)]; }

  /// The sum of all parts except `other`.
  [[nodiscard]] std::int64_t accounted() const noexcept;
  /// How much the parts exceed the peak; 0 if they do not.
  [[nodiscard]] std::int64_t excess() const noexcept;
  /// Whether the device has room for the peak; nothing without a device or for a negative, hence invalid, peak.
  [[nodiscard]] std::optional<bool> fits() const;
  /// The peak in percent of the device's memory; nothing without a device, if its memory is 0, or if the peak is negative.
  [[nodiscard]] std::optional<double> usage_percent() const;
};

namespace detail {

/// Whether blocks were live that have a category other than `other`.
[[nodiscard]] bool has_categories(const live_set& live);

}  // namespace detail

/// Breaks down one memory space of a profile; `space` must be one of the profile's.
///
/// If blocks have categories, model, optimizer, activations and gradients are the most bytes of their category at any peak that
/// the profile knows. A size whose category has no block, and everything from a log, comes from the phases: model and optimizer
/// are the total change of all MODEL_CREATION and OPTIMIZER_CREATION segments; activations are what a run of FORWARD_PASS
/// segments without a BACKWARD_PASS between them keeps; gradients are what is live after the last BACKWARD_PASS minus what was
/// live after the last OPTIMIZER_CREATION; the gradients' part of the peak is the greatest peak of a BACKWARD_PASS above its
/// begin. Names may be numbered (`is_occurrence`).
[[nodiscard]] memory_breakdown break_down(const profile& of, const space_profile& space, const breakdown_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
